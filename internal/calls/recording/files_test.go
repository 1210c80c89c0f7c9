// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func openFiles(t *testing.T, dir string) *Files {
	t.Helper()
	f, err := OpenFiles(dir, limits.LeastRecordBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// The files together stay within the limit, those of processes before this one as well, and the newest lines are kept.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "calls.txt")
	if err := errors.Join(
		os.WriteFile(other, []byte("not ours"), 0o600),
		os.WriteFile(filepath.Join(dir, "calls-20200101T000000.000000000Z.jsonl"), make([]byte, 300), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	f := openFiles(t, dir)
	f.most, f.mostFile = 1000, 250
	for i := range 100 {
		if err := f.Write(fmt.Appendf(nil, "%099d\n", i)); err != nil {
			t.Fatal(err)
		}
		total, number := int64(0), 0
		names, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if total += info.Size(); info.Size() > 300 {
				t.Fatalf("a file has %d bytes", info.Size())
			}
			number++
		}
		if total > 1000 || total != f.total || number != len(f.all) {
			t.Fatalf("after %d lines, %d files have %d bytes; want %d and %d", i+1, number, total, len(f.all), f.total)
		}
	}
	if files := contents(t, dir); !strings.HasSuffix(files[len(files)-2], fmt.Sprintf("%099d\n", 99)) {
		t.Errorf("the newest line is lost: %q", files)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	// A line that fills everything is written all the same, alone.
	if err := f.Write(make([]byte, 1000)); err != nil || f.total != 1000 || len(f.all) != 1 {
		t.Errorf("got %v, %d bytes in %d files", err, f.total, len(f.all))
	}
}

func TestNumberOfFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range limits.RecordFiles + 10 {
		name := fmt.Sprintf("calls-20200101T000000.%09dZ.jsonl", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openFiles(t, dir)
	if files := contents(t, dir); len(files) != limits.RecordFiles {
		t.Errorf("there are %d files", len(files))
	}
}

// A file that someone removes while it is written to is not the end of the recording.
func TestRemovedFile(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, dir)
	if err := errors.Join(f.Write([]byte("1\n")), os.Remove(f.current().name), f.Write([]byte("2\n"))); err != nil {
		t.Fatal(err)
	}
	if files := contents(t, dir); len(files) != 1 || files[0] != "2\n" || f.total != 2 {
		t.Errorf("got %q, %d bytes", files, f.total)
	}
}

// Nothing is left of a recording without calls, and a directory that is none is known at once.
func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, dir)
	f.Close()
	if files := contents(t, dir); len(files) != 0 {
		t.Errorf("got %q", files)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFiles(file, limits.LeastRecordBytes); err == nil {
		t.Error("a file was taken for a directory")
	}
	if _, err := OpenFiles(dir, limits.LeastRecordBytes-1); err == nil {
		t.Error("too small a limit was accepted")
	}
}

func TestReader(t *testing.T) {
	const good = `{"hook":"H","apiVersion":"g/v1","request":{},"answer":{}}`
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"empty":       {"an empty file has no calls", "", nil},
		"empty lines": {"empty lines are no calls", "\n" + good + "\n\n", []string{"2 H"}},
		"cut": {"a gateway that was killed leaves a part of a line", good + "\n" + good[:20],
			[]string{"1 H", "2 f:2: the line is cut off cut"}},
		"no end": {"a whole line needs no end", good, []string{"1 H"}},
		"other": {"other lines are named, and those behind them read", "{\"a\":1}\nx\n" + good + "\n", []string{
			"1 f:1: not a line of a recording: want apiVersion, hook, request, and either answer or error",
			"2 f:2: not a line of a recording: invalid character 'x' looking for beginning of value", "3 H",
		}},
		"both": {"a call has one outcome", strings.Replace(good, "{}}", `{},"error":{}}`, 1) + "\n", []string{
			"1 f:1: not a line of a recording: want apiVersion, hook, request, and either answer or error",
		}},
		"long": {"a line is bounded", strings.Repeat("x", limits.RecordLineBytes+2) + "\n" + good, []string{
			fmt.Sprintf("1 f:1: the line has more than %d bytes", limits.RecordLineBytes), "2 H",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader("f", strings.NewReader(tc.text))
			var got []string
			for {
				record, line, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err == nil {
					got = append(got, fmt.Sprintf("%d %s", line, record.Hook))
					continue
				}
				var wrong *LineError
				if !errors.As(err, &wrong) {
					t.Fatal(err)
				}
				text := fmt.Sprintf("%d %s", line, err)
				if wrong.Cut {
					text += " cut"
				}
				got = append(got, text)
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
		})
	}
}
