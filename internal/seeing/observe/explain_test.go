// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
)

// TestExplained has errors whose texts name the handler, and say more in their causes.
func TestExplained(t *testing.T) {
	failed := func(message string, cause error) *hook.Error {
		return &hook.Error{Kind: hook.BadResponse, Handler: "v.acme", Message: message, Cause: cause}
	}
	wrote := &extension.StatusError{Code: 500, Body: "database\n\"east\" is away\n"}
	answered := failed("call extension: answered 500 Internal Server Error", wrote)
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"Status":       {answered, `500: database "east" is away`},
		"Cut":          {failed("call extension: answered 500 Internal Server Error", &extension.StatusError{Code: 500, Body: "<html>", Cut: true}), "500: <html>…"},
		"NoBody":       {failed("call extension: answered 500 Internal Server Error", nil), "answered 500 Internal Server Error"},
		"Control":      {failed("call extension: answered 599", &extension.StatusError{Code: 599, Body: "\x1b[2J\xff"}), `599: \x1b[2J` + "\uFFFD"},
		"More":         {failed("call extension: answered 404 Not Found at /x", &extension.StatusError{Code: 404, Body: "no page"}), "answered 404 Not Found at /x: no page"},
		"OpenCircuit":  {failed("circuit is open", fmt.Errorf("last failure: %w", answered)), `circuit is open: last failure: 500: database "east" is away`},
		"OtherHandler": {failed("call extension: loop", &hook.Error{Handler: "v.other", Message: "no answer"}), `loop: handler "v.other": no answer`},
		"Cause":        {failed("call extension: answer: not JSON", errors.New("unexpected EOF")), "answer: not JSON: unexpected EOF"},
		"Twice":        {failed("call extension: connection refused", errors.New("dial tcp [::1]:1: connect: connection refused")), "dial tcp [::1]:1: connect: connection refused"},
		"Plain":        {errors.New("connection refused"), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explained("v.acme", tt.err); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
