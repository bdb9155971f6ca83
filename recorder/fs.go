package recorder

import "reprise/recorder/disk"

// FS is the disk as the recorder sees it.
type FS = disk.FS

// File is an open file of an FS.
type File = disk.File
