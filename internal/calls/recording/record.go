// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"time"

	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Record is a line of a recording: a call to a handler, as the handler was asked.
type Record struct {
	head
	// Request is the request, and Answer the answer; nil if the call failed with Error.
	Request json.RawMessage `json:"request"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	// Redacted is the number of values that were removed.
	Redacted int `json:"redacted,omitempty"`
}

// Error is why a call has no answer.
type Error struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// head is a Record up to its request.
type head struct {
	Time   time.Time `json:"time"`
	CallID string    `json:"callID,omitempty"`
	// Hook and APIVersion are those that the handler implements.
	Hook       string `json:"hook"`
	APIVersion string `json:"apiVersion"`
	// Extension is the name of the ExtensionConfig, Handler the registered name, and Name the extension's own name for it.
	Extension string `json:"extension"`
	Handler   string `json:"handler"`
	Name      string `json:"name"`
	// CalledAs is the name by which callers know the handler, if an ExtensionRollout stands for it. Comparison marks a
	// call whose answer was compared with that of the stable version, and not used.
	CalledAs   string `json:"calledAs,omitempty"`
	Comparison bool   `json:"comparison,omitempty"`
	// Kind is that of a handler without a server, such as HookJob.
	Kind         string  `json:"kind,omitempty"`
	Milliseconds float64 `json:"milliseconds"`
}

// appendLine appends the line of an entry.
func (e *entry) appendLine(dst []byte, r *redact.Redactor) ([]byte, error) {
	c := &e.call
	kind := ""
	if local := c.Handler.Registration.InProcess; local != nil {
		kind = local.Kind()
	}
	begin, err := json.Marshal(head{
		Time: e.began.UTC(), CallID: c.ID, Hook: c.Hook.Hook, APIVersion: c.Hook.APIVersion(),
		Extension: c.Handler.Registration.Name, Handler: c.Handler.Name, Name: c.Handler.Handler.Name,
		CalledAs: c.CalledAs, Comparison: c.Comparison, Kind: kind, Milliseconds: float64(e.took.Microseconds()) / 1000,
	})
	if err != nil {
		return dst, err
	}
	dst = append(append(dst, begin[:len(begin)-1]...), `,"request":`...)
	of := c.Hook.GroupHook()
	dst, redacted, err := r.Append(dst, e.text[:e.request], of)
	if err != nil {
		return dst, err
	}
	if e.err != nil {
		failed, err := json.Marshal(e.err)
		if err != nil {
			return dst, err
		}
		dst = append(append(dst, `,"error":`...), failed...)
	} else {
		var more int
		if dst, more, err = r.Append(append(dst, `,"answer":`...), e.text[e.request:], of); err != nil {
			return dst, err
		}
		redacted += more
	}
	if redacted > 0 {
		count, err := json.Marshal(redacted)
		if err != nil {
			return dst, err
		}
		dst = append(append(dst, `,"redacted":`...), count...)
	}
	return append(dst, "}\n"...), nil
}
