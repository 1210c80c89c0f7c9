// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxAnswer bounds the body of an answer: the null extension's are below 1 KB.
const maxAnswer = 1 << 20

// http1Caller is one kept HTTP/1.1 connection. It writes the same bytes again and again and reads just enough of the
// answers, so that most of the machine is left to the peers.
type http1Caller struct {
	conn    *tls.Conn
	reader  *bufio.Reader
	request []byte
	body    []byte
}

// http1Request returns the bytes of a request, which callers share.
func http1Request(path string, body []byte) []byte {
	head := fmt.Sprintf("POST %s?timeout=10s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n", path, len(body))
	return append([]byte(head), body...)
}

func (c *http1Caller) call() error {
	if err := c.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	_, writeErr := c.conn.Write(c.request)
	// A server that refuses the request may answer and close before it has read all of it: its answer says more.
	status, body, err := readAnswer(c.reader, c.body[:0])
	c.body = body
	if err != nil {
		return errors.Join(writeErr, err)
	}
	if err := checkAnswer(status, body); err != nil {
		return err
	}
	return writeErr
}

func (c *http1Caller) close() error { return c.conn.Close() }

// readAnswer reads one HTTP/1.1 answer whose body, appended to buf, ends by Content-Length or chunks. Answers without
// either, which end with the connection, are refused: the peers keep connections, and a caller would measure
// handshakes.
func readAnswer(r *bufio.Reader, buf []byte) (status int, body []byte, err error) {
	status, length, chunked, err := readHead(r)
	for err == nil && status/100 == 1 {
		status, length, chunked, err = readHead(r)
	}
	switch {
	case err != nil:
		return 0, buf, fmt.Errorf("read head of answer: %w", err)
	case chunked:
		body, err = readChunks(r, buf)
	case length < 0:
		return 0, buf, errors.New("answer has neither Content-Length nor chunks")
	default:
		body, err = readN(r, buf, length)
	}
	if err != nil {
		return 0, body, fmt.Errorf("read body of answer: %w", err)
	}
	return status, body, nil
}

// readHead reads the status line and the headers. The length is -1 if there is none.
func readHead(r *bufio.Reader) (status, length int, chunked bool, err error) {
	line, err := readLine(r)
	if err != nil {
		return 0, 0, false, err
	}
	// HTTP/1.1 200 OK
	version, rest, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(rest, []byte(" "))
	if status, err = strconv.Atoi(string(code)); err != nil || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return 0, 0, false, fmt.Errorf("status line %q", line)
	}
	length = -1
	for {
		if line, err = readLine(r); err != nil {
			return 0, 0, false, err
		}
		if len(line) == 0 {
			return status, length, chunked, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return 0, 0, false, fmt.Errorf("header line %q", line)
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, 0, false, fmt.Errorf("header line %q", line)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		}
	}
}

// readLine returns a line without its end, valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == io.EOF && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// readChunks appends a chunked body to buf and reads its trailers.
func readChunks(r *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		line, err := readLine(r)
		if err != nil {
			return buf, err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		size, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 31)
		if err != nil {
			return buf, fmt.Errorf("chunk size %q", line)
		}
		if size == 0 {
			for {
				if line, err = readLine(r); err != nil || len(line) == 0 {
					return buf, err
				}
			}
		}
		if buf, err = readN(r, buf, int(size)); err != nil {
			return buf, err
		}
		if line, err = readLine(r); err != nil {
			return buf, err
		} else if len(line) > 0 {
			return buf, fmt.Errorf("%q behind a chunk", line)
		}
	}
}

// readN appends n bytes to buf.
func readN(r *bufio.Reader, buf []byte, n int) ([]byte, error) {
	start := len(buf)
	if start+n > maxAnswer {
		return buf, fmt.Errorf("more than %d bytes", maxAnswer)
	}
	if cap(buf) < start+n {
		buf = append(make([]byte, 0, start+n), buf...)
	}
	buf = buf[:start+n]
	_, err := io.ReadFull(r, buf[start:])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return buf, err
}
