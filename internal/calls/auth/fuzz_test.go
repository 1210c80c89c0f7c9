// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// FuzzCallers reads files of callers. Callers of a valid file can be found by their tokens, and by no others.
func FuzzCallers(f *testing.F) {
	for _, callers := range []string{
		"- {name: a, token: " + someToken + ", hooks: [Discovery, GeneratePatches], expires: 2030-01-31T00:00:00Z}",
		"- {name: a, tokenSHA256: " + strings.Repeat("aB", 32) + ", hooks: [\"*\"]}\n- {name: b, certificateNames: [x, 'spiffe://y/z'], hooks: [Discovery]}",
		"- &a {name: a, hooks: &h [\"*\"], <<: *a}\n- {hooks: *h}",
	} {
		f.Add([]byte(header + callers))
	}
	f.Add([]byte(header + "[" + strings.Repeat("[", 200)))
	hooks := catalog.New()
	memory := alloctest.Bound{Base: 1 << 20, PerByte: 4 << 10}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c *callers
		var err error
		memory.Check(t, len(data), func() { c, err = parseCallers(data, hooks) })
		if err != nil {
			if len(err.Error()) > 64<<10+16*len(data) {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if c.byToken("a token that no file has") != nil {
			t.Error("any token is a caller's")
		}
		for i := range c.entries {
			e := &c.entries[i]
			if e.Name == "" || len(e.Name) > limits.CallerNameBytes || e.token == nil && len(e.certificateNames) == 0 ||
				!e.everything && len(e.hooks) == 0 {
				t.Errorf("caller %+v", e)
			}
		}
	})
}

// FuzzBearer reads Authorization headers. A token has no white space around it, and never more than limits.TokenBytes.
func FuzzBearer(f *testing.F) {
	for _, header := range []string{"Bearer " + someToken, "bearer\t" + someToken, " Bearer  a b ", "Basic YTpi", "Bearer", ""} {
		f.Add(header)
	}
	memory := alloctest.Bound{Base: 64 << 10, PerByte: 16}
	f.Fuzz(func(t *testing.T, header string) {
		var token string
		var err error
		memory.Check(t, len(header), func() { token, err = (&Credentials{Authorization: []string{header}}).bearer() })
		switch {
		case err != nil && (hook.KindOf(err) != hook.Unauthenticated || token != ""):
			t.Errorf("%q: token %q, %v", header, token, err)
		case err == nil && (token == "" || len(token) > limits.TokenBytes || strings.TrimSpace(token) != token || !strings.HasSuffix(strings.TrimSpace(header), token)):
			t.Errorf("%q has the token %q", header, token)
		}
		if err != nil && len(header) > 16 && strings.Contains(fmt.Sprint(err), header) {
			t.Errorf("the error shows the header: %v", err)
		}
	})
}
