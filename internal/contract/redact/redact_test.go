// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestText(t *testing.T) {
	const key = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----"
	for name, tc := range map[string]struct{ in, want string }{
		"Key":         {"read " + key + " twice " + key, "read *** twice ***"},
		"HalfAKey":    {"read -----BEGIN PRIVATE KEY-----\nMHcCAQ", "read ***"},
		"Certificate": {"-----BEGIN CERTIFICATE-----\nMIIB", "-----BEGIN CERTIFICATE-----\nMIIB"},
		"JWT":         {"got eyJhbGciOi.eyJzdWIi.SflKxw-_x, refused", "got ***, refused"},
		"Bearer":      {"Authorization: Bearer abcdef0123456789 denied", "Authorization: Bearer *** denied"},
		"Basic":       {"authorization: basic dXNlcjpwYXNz", "authorization: basic ***"},
		"URL":         {"dial https://user:pa/ss@example.com:1/x failed", "dial https://***@example.com:1/x failed"},
		"Password":    {"dsn user=u password=hunter2 host=h", "dsn user=u password=*** host=h"},
		"Sudoers":     {"ALL=(ALL) NOPASSWD:ALL", "ALL=(ALL) NOPASSWD:ALL"},
		"Prefixed":    {"DB_PASSWORD=hunter2 rootPasswd: x", "DB_PASSWORD=*** rootPasswd: ***"},
		"Quoted":      {`{"password": "hunter two", "a": 1}`, `{"password": "***", "a": 1}`},
		"Token":       {`?token=abc&x=1`, `?token=***&x=1`},
		"JSONToken":   {`{"api_key":"abc"}`, `{"api_key":"***"}`},
		"Words":       {"the secret: it is missing; a bearer of news; basic types", "the secret: it is missing; a bearer of news; basic types"},
		"Text":        {`handler "v.acme": call extension: connection refused`, `handler "v.acme": call extension: connection refused`},
		"PlainURL":    {"https://example.com/x and a@example.com", "https://example.com/x and a@example.com"},
	} {
		if got := Text(tc.in); got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestBounded(t *testing.T) {
	const n = 100
	for name, tc := range map[string]struct{ in, want string }{
		"AtLimit": {strings.Repeat("x", n), strings.Repeat("x", n)},
		"Beyond":  {strings.Repeat("x", n+1), strings.Repeat("x", n-len(" … (cut)")) + " … (cut)"},
		"Huge":    {strings.Repeat("x", 1<<20), strings.Repeat("x", n-len(" … (cut)")) + " … (cut)"},
	} {
		if got := Bounded(tc.in, n); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	for shift := range 4 {
		if got := Bounded(strings.Repeat("x", shift)+strings.Repeat("€", 1<<15), n); !utf8.ValidString(got) || len(got) > n {
			t.Errorf("a character was cut: %q", got)
		}
	}
	// The cut must not leave the beginning of a secret, which alone has no shape.
	if got := Bounded(strings.Repeat("x", n-30)+" eyJhbGciOi."+strings.Repeat("y", n)+".z", n); strings.Contains(got, "eyJ") {
		t.Errorf("half a token is left: %s", got)
	}
}

// Whatever is logged, a line has a limit and no secret.
func TestLogAttr(t *testing.T) {
	huge := strings.Repeat("x", 1<<20) + " password=hunter2"
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: LogAttr}))
	logger.Error("password=hunter2", "text", "password=hunter2 "+huge, "error", errors.New(huge), "list", []string{huge},
		"group", slog.GroupValue(slog.String("inner", huge)))
	if strings.Contains(log.String(), "hunter2") {
		t.Error("the log has a password")
	}
	if log.Len() > 5*limits.LogTextBytes {
		t.Errorf("a line has %d bytes", log.Len())
	}
}

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.com:1/x":        "https://example.com:1/x",
		"https://u:p@example.com/x":      "https://***@example.com/x",
		"https://u:p@ss/w d@example.com": "https://***@example.com",
		"u:p@example.com":                "***@example.com",
		"https://example.com?token=abc":  "https://example.com?token=***",
		"":                               "",
		"@":                              "***@",
	} {
		if got := URL(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// What cannot be read within the limits, or not at all, is taken for a secret; ordinary text is not.
func TestWhatCannotBeRead(t *testing.T) {
	nested := func(text string, times int) string {
		for range times {
			text = b64(text)
		}
		return text
	}
	for name, tc := range map[string]struct{ in, want string }{
		"Deep":       {nested("token: x", limits.RedactDepth+2), nested(Mask, limits.RedactDepth+1)},
		"Bomb":       {b64(zipped(strings.Repeat("x", 2*limits.RedactLeastBytes))), Mask},
		"Xz":         {"write " + b64("\xfd7zXZ\x00"+strings.Repeat("z", 40)), "write " + Mask},
		"HalfOfGzip": {b64(zipped("token: " + strings.Repeat("abc", 10))[:30]), Mask},
		"UTF-16":     {b64(strings.Join(strings.Split("password=hunter2", ""), "\x00") + "\x00"), Mask},
	} {
		got := Text(tc.in)
		if got == tc.in || name != "Deep" && got != tc.want {
			t.Errorf("%s: %s became %s, want %s", name, tc.in, got, tc.want)
		}
	}
}

// The rules of gitleaks are valid, and stand under its license.
func TestRules(t *testing.T) {
	var file struct{ Source, License string }
	if err := json.Unmarshal(rulesJSON, &file); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(file.Source, "github.com/zricethezav/gitleaks/v8@v8.") || !strings.HasPrefix(file.License, "MIT License") {
		t.Errorf("source %q, license %.20q", file.Source, file.License)
	}
	rules := theMatcher().rules
	if len(rules) < 200 {
		t.Errorf("there are %d rules", len(rules))
	}
	for _, r := range rules {
		r.compiled()
		for _, word := range r.Keywords {
			if word != strings.ToLower(word) || word == "" {
				t.Errorf("keyword %q", word)
			}
		}
	}
}
