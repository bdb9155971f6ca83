package app

import (
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"os"
)

// junitReport writes results as JUnit XML, which build servers read. A nil
// report writes nothing.
type junitReport struct {
	file  *os.File
	suite junitSuite
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Seconds  float64     `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Seconds float64       `xml:"time,attr"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Output  string        `xml:"system-out"`
}

type junitProblem struct {
	Type string `xml:"type,attr"`
	Text string `xml:"message,attr"`
}

// openJUnit opens the report's file, which must be none of the replays; nil
// where no report was asked for.
func openJUnit(path string, entries []replayEntry) (*junitReport, error) {
	if path == "" {
		return nil, nil
	}
	for _, e := range entries {
		if sameFile(path, e.path) {
			return nil, usagef("--junit %s: that is a replay", printable(path))
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, usagef("--junit %s: %w", printable(path), cause(err))
	}
	return &junitReport{file: file, suite: junitSuite{Name: "reprise verify"}}, nil
}

// add takes one file's result: a desync is a failure, whatever kept it from
// being verified an error.
func (j *junitReport) add(r *verifyResult) {
	if j == nil {
		return
	}
	c := junitCase{Name: printable(string(r.File)), Class: printable(string(r.Game)), Seconds: milliseconds(r.Seconds),
		Output: fmt.Sprintf("%s run, %s compared", counted(r.Ticks, "tick"), counted(r.Compared, "hash"))}
	if machine := r.Machine.text(); machine != "" {
		c.Output += "; " + machine
	}
	problem := &junitProblem{Type: r.Status, Text: printableLines(string(r.Problem))}
	switch r.Exit {
	case exitOK:
	case exitFalse:
		c.Failure = problem
		j.suite.Failures++
	default:
		c.Error = problem
		j.suite.Errors++
	}
	j.suite.Tests++
	j.suite.Seconds = milliseconds(j.suite.Seconds + r.Seconds)
	j.suite.Cases = append(j.suite.Cases, c)
}

// milliseconds is as exact as readers of such reports want it.
func milliseconds(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

func (j *junitReport) close() error {
	if j == nil {
		return nil
	}
	_, err := j.file.WriteString(xml.Header)
	enc := xml.NewEncoder(j.file)
	enc.Indent("", "  ")
	err = errors.Join(err, enc.Encode(&j.suite))
	_, endErr := j.file.WriteString("\n")
	return errors.Join(err, endErr, j.file.Close())
}
