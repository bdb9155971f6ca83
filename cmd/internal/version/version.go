// Package version says which build a program is, and which versions of the
// file format and of the protocol it writes and speaks.
package version

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"reprise/format"
	"reprise/transport"
)

// module is the path of the module that the programs are part of.
const module = "reprise"

// Line is what --version prints.
func Line(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return line(program, info)
}

func line(program string, info *debug.BuildInfo) string {
	fields := []string{strings.TrimSpace(program + " " + build(info)), cmp.Or(info.GoVersion, "unknown Go version"),
		fmt.Sprintf("file format RPLY2 %d.%d", format.VersionMajor, format.VersionMinor),
		fmt.Sprintf("protocol %d (%d to %d)", transport.Version, transport.LowestVersion, transport.Version)}
	return strings.Join(fields, ", ")
}

// build is the version of the module with the revision it was built from.
func build(info *debug.BuildInfo) string {
	if info.Main.Path != module {
		return dependency(info)
	}
	version := cmp.Or(info.Main.Version, "(devel)")
	revision := setting(info, "vcs.revision")
	revision = revision[:min(len(revision), revisionDigits)]
	if revision == "" || strings.Contains(version, revision) {
		return version
	}
	if setting(info, "vcs.modified") == "true" {
		revision += "+dirty"
	}
	return version + " " + revision
}

// revisionDigits tell a revision from others for a person.
const revisionDigits = 7

// dependency is the version in a program of one's own that links the command.
// The revision is that program's then.
func dependency(info *debug.BuildInfo) string {
	for _, d := range info.Deps {
		switch {
		case d.Path != module:
		case d.Replace != nil:
			return cmp.Or(d.Replace.Version, "(devel)")
		default:
			return cmp.Or(d.Version, "(devel)")
		}
	}
	return "(devel)"
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
