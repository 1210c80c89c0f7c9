// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxAnswer bounds the body of an answer: the null extension's are below 1 KB.
const maxAnswer = 1 << 20

// http1Caller is one kept HTTP/1.1 connection. It writes the same bytes again and again, without a goroutine or a client
// of its own, so that most of the machine is left to the peers.
type http1Caller struct {
	conn    *tls.Conn
	reader  *bufio.Reader
	request []byte
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
	status, body, err := readAnswer(c.reader)
	if err != nil {
		return errors.Join(writeErr, err)
	}
	if err := checkAnswer(status, body); err != nil {
		return err
	}
	return writeErr
}

func (c *http1Caller) close() error { return c.conn.Close() }

// readAnswer reads one answer. It refuses a body that ends with its connection: the peers keep connections, and a caller
// would measure handshakes.
func readAnswer(r *bufio.Reader) (status int, body []byte, err error) {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("read head of answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.ContentLength < 0 && !slices.Contains(resp.TransferEncoding, "chunked") {
		return 0, nil, errors.New("answer has neither Content-Length nor chunks")
	}
	body, err = io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswer))
	if err != nil {
		return 0, body, fmt.Errorf("read body of answer: %w", err)
	}
	return resp.StatusCode, body, nil
}
