// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Reader reads a recording line by line.
type Reader struct {
	name string
	in   *bufio.Reader
	line int
	text []byte
}

// NewReader returns a Reader of a file, whose name is for its errors.
func NewReader(name string, in io.Reader) *Reader {
	return &Reader{name: name, in: bufio.NewReaderSize(in, 64<<10)}
}

// LineError is a line that cannot be used. The lines after it can be read.
type LineError struct {
	File string
	Line int
	// Cut means that the file ends within the line: the gateway that wrote it was killed, or is still writing.
	Cut bool
	Err error
}

// Error returns the text with the place.
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

var (
	errCut     = errors.New("the line is cut off")
	errTooLong = fmt.Errorf("the line has more than %d bytes", limits.RecordLineBytes)
)

// Next returns the next record and the number of its line. The error is io.EOF at the end, a *LineError for a line that
// is no record, or one of reading the file. The record is valid until the next call.
func (r *Reader) Next() (*Record, int, error) {
	for {
		text, err := r.next()
		if err != nil {
			return nil, r.line, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		record := &Record{}
		if err := json.Unmarshal(text, record); err != nil {
			return nil, r.line, r.wrong(fmt.Errorf("not a line of a recording: %w", err))
		}
		if record.Hook == "" || record.APIVersion == "" || len(record.Request) == 0 ||
			(record.Error == nil) == (len(record.Answer) == 0) {
			return nil, r.line, r.wrong(errors.New(
				"not a line of a recording: want apiVersion, hook, request, and either answer or error"))
		}
		return record, r.line, nil
	}
}

// next returns the next line, without its end.
func (r *Reader) next() ([]byte, error) {
	r.text = r.text[:0]
	r.line++
	for long := false; ; {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(r.text)+len(part) > limits.RecordLineBytes+1; !long {
			r.text = append(r.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(r.text) == 0 && !long:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read %s: %w", r.name, err)
		case long:
			return nil, r.wrong(errTooLong)
		case err != nil && !json.Valid(r.text):
			return nil, &LineError{File: r.name, Line: r.line, Cut: true, Err: errCut}
		}
		return r.text, nil
	}
}

func (r *Reader) wrong(err error) error { return &LineError{File: r.name, Line: r.line, Err: err} }
