// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// ReadRequest reads a request of the hook from a file, or from in where path is "-": YAML, or JSON, which keeps its
// objects byte for byte. apiVersion and kind may be left out. It writes a line to warnings for each misspelt member.
func ReadRequest(
	in io.Reader, path string, h *catalog.Hook, c *codec.Codec, warnings io.Writer,
) (proto.Message, error) {
	body, err := ReadJSON(in, path)
	if err != nil {
		return nil, err
	}
	return DecodeRequest(body, path, h, c, warnings)
}

// DecodeRequest returns the request of the hook that a file has, as ReadRequest does.
func DecodeRequest(
	body []byte, path string, h *catalog.Hook, c *codec.Codec, warnings io.Writer,
) (proto.Message, error) {
	message := h.Request.New().Interface()
	misspelt := func(m codec.Misspelling) { _, _ = fmt.Fprintf(warnings, "Warning: the request: %s\n", m) }
	if _, err := c.DecodeGuarded(body, message, codec.Guard{Misspelt: misspelt}); err != nil {
		return nil, fmt.Errorf("read request %s: it cannot be read as %s: %w", InputName(path),
			message.ProtoReflect().Descriptor().Name(), err)
	}
	return message, nil
}

// InputName returns the name of a file in messages, which is "-" for standard input.
func InputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// ReadJSON returns the content of a file, or of in where path is "-", as JSON.
func ReadJSON(in io.Reader, path string) ([]byte, error) {
	name := InputName(path)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, limits.BodyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	if len(data) > limits.BodyBytes {
		return nil, fmt.Errorf("read request %s: it is larger than the %d MiB that a request may have",
			name, limits.BodyBytes>>20)
	}
	body, err := requestJSON(data)
	if err != nil {
		return nil, fmt.Errorf("read request %s: %w", name, err)
	}
	return body, nil
}

// requestJSON returns a file's content as JSON.
func requestJSON(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // the mark that some editors put in front
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, yaml.ErrEmpty
	}
	if json.Valid(data) {
		return data, nil
	}
	body, err := yaml.ToJSON(data, limits.BodyBytes)
	if err != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		// The text begins as JSON, so report its error as JSON.
		if line, what := jsonFault(data); line > 0 {
			return nil, fmt.Errorf("line %d: %s", line, what)
		}
	}
	return body, err
}

// jsonFault returns the line and the description of the first error in JSON, or 0 if it is valid.
func jsonFault(data []byte) (line int, what string) {
	var discard json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(data, &discard)
	if !errors.As(err, &syntax) {
		return 0, ""
	}
	return 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n")), syntax.Error()
}
