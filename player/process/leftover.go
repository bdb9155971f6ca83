package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// folderPrefix begins the name of a socket's folder in the folder for
// temporary files; the number of the process that made it follows.
const folderPrefix = "reprise-sim-"

func folderPattern(pid int) string { return folderPrefix + strconv.Itoa(pid) + "-" }

const (
	// leftoverAge is from when on the folder of a process that is gone is a
	// leftover. A folder is there only until the child has said hello.
	leftoverAge = 10 * time.Minute
	// certainAge is from when on any folder is: another process has the
	// number by then, or runs where this one cannot see it.
	certainAge = 24 * time.Hour
)

// sweepOnce removes leftovers when a program opens its first socket.
var sweepOnce = sync.OnceFunc(func() { sweep(os.TempDir(), time.Now()) })

// sweep removes the folders that processes left behind which were killed
// while they waited for a child. What cannot be removed stays.
func sweep(temp string, now time.Time) {
	folders, _ := filepath.Glob(filepath.Join(temp, folderPrefix+"*"))
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !isLeftover(filepath.Base(folder), now.Sub(info.ModTime())) {
			continue
		}
		// Not RemoveAll: what holds anything else is not a socket's folder.
		_ = os.Remove(filepath.Join(folder, socketName))
		_ = os.Remove(folder)
	}
}

func isLeftover(name string, age time.Duration) bool {
	number, _, _ := strings.Cut(strings.TrimPrefix(name, folderPrefix), "-")
	pid, err := strconv.Atoi(number)
	return age > certainAge || err == nil && age > leftoverAge && !isRunning(pid)
}
