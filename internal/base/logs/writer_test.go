// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func write(t *testing.T, w io.Writer, line string) {
	t.Helper()
	if n, err := io.WriteString(w, line); n != len(line) || err != nil {
		t.Errorf("wrote %d of %d bytes, %v", n, len(line), err)
	}
}

func TestWriterKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		w := New(&b)
		var want strings.Builder
		for i := range 1000 {
			line := fmt.Sprintf("line %d\n", i)
			want.WriteString(line)
			write(t, w, line)
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		_ = w.Close()
		write(t, w, "too late\n")
		_ = w.Close()
		if b.String() != want.String() {
			t.Errorf("got %s", b.String())
		}
	})
}

// blocked blocks each write until it is released.
type blocked struct {
	bytes.Buffer
	released chan struct{}
}

func (b *blocked) Write(p []byte) (int, error) {
	<-b.released
	return b.Buffer.Write(p)
}

// While the other writer blocks, lines are kept up to the limit exactly, and those beyond it are counted.
func TestWriterDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &blocked{released: make(chan struct{})}
		w := New(to)
		w.OnDropped(func(lines int) { write(t, w, fmt.Sprintf("dropped %d\n", lines)) })
		write(t, w, "first\n")
		synctest.Wait() // it is being written
		kept := strings.Repeat("k", limits.LogBytes-1) + "\n"
		write(t, w, kept)
		for range 3 {
			write(t, w, "\n")
		}
		go close(to.released) // while Close waits
		_ = w.Close()
		if want := "first\n" + kept + "dropped 3\n"; to.String() != want {
			t.Errorf("got %d bytes that end in %q", to.Len(), to.String()[max(0, to.Len()-40):])
		}
	})
}

// Close does not wait for a writer that blocks for longer than a second.
func TestCloseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &blocked{released: make(chan struct{})}
		w := New(to)
		write(t, w, "line\n")
		began := time.Now()
		_ = w.Close()
		if took := time.Since(began); took != flushTime {
			t.Errorf("it took %s, want %s", took, flushTime)
		}
		close(to.released)
	})
}

// Lines of concurrent writers are not mixed.
func TestWriterKeepsLinesWhole(t *testing.T) { synctest.Test(t, writerKeepsLinesWhole) }

func writerKeepsLinesWhole(t *testing.T) {
	var b bytes.Buffer
	w := New(&b)
	line := strings.Repeat("x", 99) + "\n"
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				write(t, w, line)
			}
		})
	}
	writers.Wait()
	_ = w.Close()
	if b.String() != strings.Repeat(line, 800) {
		t.Errorf("got %d bytes", b.Len())
	}
}
