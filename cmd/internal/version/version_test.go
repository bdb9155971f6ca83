package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"reprise/format"
	"reprise/transport"
)

func TestLine(t *testing.T) {
	const revision = "3f2a1c0d9e8b7a6f5e4d3c2b1a0f9e8d7c6b5a49"
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}
	}
	own := func(version string) debug.Module { return debug.Module{Path: "reprise", Version: version} }
	rest := fmt.Sprintf(", go1.26.8, file format RPLY2 %d.%d, protocol %d (%d to %d)", format.VersionMajor, format.VersionMinor,
		transport.Version, transport.LowestVersion, transport.Version)
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"without a revision":  {debug.BuildInfo{Main: own("(devel)")}, "reprise (devel)"},
		"with a revision":     {debug.BuildInfo{Main: own("(devel)"), Settings: vcs("false")}, "reprise (devel) 3f2a1c0"},
		"changed since then":  {debug.BuildInfo{Main: own("(devel)"), Settings: vcs("true")}, "reprise (devel) 3f2a1c0+dirty"},
		"released":            {debug.BuildInfo{Main: own("v1.2.3"), Settings: vcs("false")}, "reprise v1.2.3 3f2a1c0"},
		"revision in version": {debug.BuildInfo{Main: own("v0.0.0-20260101000000-3f2a1c0d9e8b+dirty"), Settings: vcs("true")}, "reprise v0.0.0-20260101000000-3f2a1c0d9e8b+dirty"},
		"linked":              {debug.BuildInfo{Main: debug.Module{Path: "game", Version: "v9.0.0"}, Deps: []*debug.Module{{Path: "x", Version: "v8.0.0"}, {Path: "reprise", Version: "v1.2.3"}}, Settings: vcs("true")}, "reprise v1.2.3"},
		"linked from a folder": {debug.BuildInfo{Main: debug.Module{Path: "game"}, Deps: []*debug.Module{{Path: "reprise", Version: "v0.0.0", Replace: &debug.Module{Path: "../reprise"}}}},
			"reprise (devel)"},
	} {
		t.Run(name, func(t *testing.T) {
			c.info.GoVersion = "go1.26.8"
			if got := line("reprise", &c.info); got != c.want+rest {
				t.Errorf("%q\nwant %q", got, c.want+rest)
			}
		})
	}
	if got := Line("reprised"); !strings.HasPrefix(got, "reprised ") || !strings.Contains(got, ", "+runtime.Version()+", file format RPLY2 ") {
		t.Errorf("this program says %q", got)
	}
}
