// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// answerLimit bounds an answer: a list of every machine that the cloud may have.
const answerLimit = 16 << 20

// Client calls a fake cloud. It is safe for concurrent use.
type Client struct {
	URL string
	// Token is the cloud's, if it wants one.
	Token string
	// HTTP is http.DefaultClient if nil.
	HTTP *http.Client
}

// Do calls the cloud, with body as JSON unless nil, and decodes the answer into result unless nil. An answer other
// than 2xx is an *Error.
func (c *Client) Do(ctx context.Context, method, path string, body, result any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: encode: %w", method, path, err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, content)
	if err != nil {
		return err
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		failure := &Error{Status: response.StatusCode, Message: string(answer)}
		_ = json.Unmarshal(answer, failure) // an answer that is no error of the cloud stays as it is
		return failure
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("%s %s: decode the answer: %w", method, path, err)
	}
	return nil
}
