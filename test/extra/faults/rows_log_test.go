// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// logFaults are the rows of what reads the log of a gateway.
func logFaults() []row {
	return []row{
		{"nothing reads the log", "calls are answered, and the lines that are dropped are counted", logBlocks},
	}
}

// logBlocks gives a gateway a pipe for its log from which nothing is read, and makes calls that are logged: more than
// the pipe and the gateway hold. Then it reads what is there.
func logBlocks(t *testing.T, w *fixture, c *tally) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	good, bad := startExtension(t, w.authority, healthy), startExtension(t, w.authority, "errors")
	g := newGateway(t, w.authority, map[string]string{
		"good.yaml": w.config("good", "https://"+good.https),
		"bad.yaml":  w.config("bad", "https://"+bad.https),
	})
	g.log = write
	g.start(t, process.AnyPorts())
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	body, broken := samples.Body("BeforeClusterCreate"), failure(http.StatusBadGateway, http.StatusServiceUnavailable)
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			for range 400 {
				got, err := post(w.rest, g.HTTPS, handler+".bad", body)
				c.answered(got, err, broken)
				err = callREST(w.rest, g.HTTPS, handler+".good", body)
				c.countf(err == nil, "%v", err)
			}
		})
	}
	running.Wait()
	lines, copied := &process.Log{}, make(chan error, 1)
	go func() {
		_, err := io.Copy(lines, read)
		copied <- err
	}()
	// That is written after all that was kept: the end of the gateway does not wait long for what reads its log.
	process.Eventually(t, "the log says how many lines were dropped", func() bool {
		return strings.Contains(lines.String(), droppedLines)
	})
	g.EndWell(t)
	if err := <-copied; err != nil {
		t.Fatal(err)
	}
	const calls, others = 16 * 400, 100 // a line of something else, such as a discovery, may be dropped, too
	logged, dropped := strings.Count(lines.String(), "call failed"), 0
	for line := range strings.Lines(lines.String()) {
		var n int
		_, rest, found := strings.Cut(line, droppedLines)
		if _, number, ok := strings.Cut(rest, " lines="); found && ok {
			_, _ = fmt.Sscan(number, &n)
		}
		dropped += n
	}
	c.countf(dropped > 0 && logged+dropped >= calls && logged+dropped <= calls+others,
		"%d calls were logged, and %d lines dropped, of %d", logged, dropped, calls)
}

// droppedLines is the message about lines that were dropped.
const droppedLines = "lines of the log were dropped"
