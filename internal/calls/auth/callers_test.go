// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/leaktest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/test/process"
)

const header = "apiVersion: hookgate.dev/v1alpha1\nkind: Callers\ncallers:\n"

const someToken = "0123456789abcdef" // as short as one may be

// TestCallersRefuseMistakes tests each rule of the file, at its limit and one beyond. No error may show a token.
func TestCallersRefuseMistakes(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		b.WriteString(header)
		for i := range n {
			fmt.Fprintf(&b, "- {name: c%d, token: %s-%d, hooks: [\"*\"]}\n", i, someToken, i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct{ content, want string }{
		"Good":            {header + "- {name: a, token: " + someToken + ", hooks: [Discovery, GeneratePatches]}", ""},
		"Digest":          {header + "- {name: a, tokenSHA256: " + strings.Repeat("aB", 32) + ", hooks: [\"*\"]}", ""},
		"Nobody":          {header, ""},
		"Most":            {many(limits.Callers), ""},
		"OneMore":         {many(limits.Callers + 1), "callers: has 1001 entries, and may have at most 1000"},
		"NotYAML":         {"\t" + someToken, "is not a file of callers"},
		"Kind":            {"apiVersion: v1\nkind: Callers\n", `apiVersion and kind: want hookgate.dev/v1alpha1 and Callers, got "v1" and "Callers"`},
		"Unknown":         {header + "- {name: a, tokens: [], hooks: [\"*\"]}", `unknown field "tokens"`},
		"Twice":           {header + "- {name: a, name: b, token: " + someToken + "}", `key "name" already set in map`},
		"NoName":          {header + "- {token: " + someToken + ", hooks: [\"*\"]}", "callers[0]: name: required"},
		"Control":         {header + "- {name: \"a\\nb\", token: " + someToken + ", hooks: [\"*\"]}", "callers[0]: name: longer than 256 bytes, or with control characters"},
		"LongestName":     {header + "- {name: " + strings.Repeat("a", limits.CallerNameBytes) + ", token: " + someToken + ", hooks: [\"*\"]}", ""},
		"LongName":        {header + "- {name: " + strings.Repeat("a", limits.CallerNameBytes+1) + ", token: " + someToken + ", hooks: [\"*\"]}", "callers[0]: name: longer than 256 bytes"},
		"SameName":        {header + "- {name: a, token: " + someToken + ", hooks: [\"*\"]}\n- {name: a, certificateNames: [b], hooks: [\"*\"]}", `callers[1]: name: "a" occurs twice`},
		"SameToken":       {header + "- {name: a, token: " + someToken + ", hooks: [\"*\"]}\n- {name: b, tokenSHA256: " + fmt.Sprintf("%x", sha256.Sum256([]byte(someToken))) + ", hooks: [\"*\"]}", `callers[1]: has the same token as caller "a"`},
		"NoHooks":         {header + "- {name: a, token: " + someToken + "}", `callers[0]: hooks: required: give names of hooks, or "*" for all`},
		"MisspeltHook":    {header + "- {name: a, token: " + someToken + ", hooks: [GeneratPatches]}", `callers[0]: hooks: no hook "GeneratPatches": did you mean "GeneratePatches"?`},
		"OtherHook":       {header + "- {name: a, token: " + someToken + ", hooks: [Dinner]}", `callers[0]: hooks: no hook "Dinner"`},
		"Nothing":         {header + "- {name: a, hooks: [\"*\"]}", "callers[0]: has nothing to identify the caller by"},
		"Both":            {header + "- {name: a, token: " + someToken + ", tokenSHA256: ab, hooks: [\"*\"]}", "token and tokenSHA256: give only one of them"},
		"EmptyName":       {header + "- {name: a, certificateNames: [\"\"], hooks: [\"*\"]}", "certificateNames: a name is empty"},
		"ShortToken":      {header + "- {name: a, token: " + someToken[1:] + ", hooks: [\"*\"]}", "token: want 16 to 16384 bytes"},
		"LongestToken":    {header + "- {name: a, token: " + strings.Repeat("x", limits.TokenBytes) + ", hooks: [\"*\"]}", ""},
		"LongToken":       {header + "- {name: a, token: " + strings.Repeat("x", limits.TokenBytes+1) + ", hooks: [\"*\"]}", "token: want 16 to 16384 bytes"},
		"ShortDigest":     {header + "- {name: a, tokenSHA256: abcd, hooks: [\"*\"]}", "tokenSHA256: want 64 hexadecimal digits"},
		"TokenAsDigest":   {header + "- {name: a, tokenSHA256: " + someToken + "z, hooks: [\"*\"]}", "tokenSHA256: want 64 hexadecimal digits"},
		"TokenAsExpiry":   {header + "- {name: a, token: " + someToken + ", expires: " + someToken + ", hooks: [\"*\"]}", "expires: want a time such as"},
		"SeveralMistakes": {header + "- {name: a, hooks: [\"*\"]}\n- {hooks: [\"*\"]}", "callers[1]: name: required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseCallers([]byte(tt.content), catalog.New())
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), someToken[:15]) {
				t.Errorf("the error shows a token: %v", err)
			}
		})
	}
}

// TestCertificatesHaveSeveralNames tests that a certificate is known by any of its names, and may call what any of its
// entries allows.
func TestCertificatesHaveSeveralNames(t *testing.T) {
	id, err := url.Parse("spiffe://example.org/ns/capi-system/sa/manager")
	if err != nil {
		t.Fatal(err)
	}
	certificate := &x509.Certificate{
		Subject: pkix.Name{CommonName: "manager"}, DNSNames: []string{"manager.example"}, URIs: []*url.URL{id}, NotAfter: time.Now().Add(time.Hour),
	}
	state := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
	discovery, _ := catalog.New().ByName("Discovery")
	patches, _ := catalog.New().ByName("GeneratePatches")
	entry := func(name, certificateName, hooks string) string {
		return fmt.Sprintf("- {name: %s, certificateNames: [%q], hooks: [%s]}\n", name, certificateName, hooks)
	}
	for name, tt := range map[string]struct {
		config    Config
		callers   string
		who       string
		discovery hook.Kind // Internal if it may call
		patches   hook.Kind
	}{
		"All":      {config: Config{}, who: id.String()},
		"Common":   {config: Config{Names: []string{"manager"}}, who: "manager"},
		"DNS":      {config: Config{Names: []string{"x", "manager.example"}}, who: "manager.example"},
		"URI":      {config: Config{Names: []string{id.String()}}, who: id.String()},
		"Case":     {config: Config{Names: []string{"Manager"}}, who: id.String(), discovery: hook.Forbidden, patches: hook.Forbidden},
		"Prefix":   {config: Config{Names: []string{"spiffe://example.org"}}, who: id.String(), discovery: hook.Forbidden, patches: hook.Forbidden},
		"Entry":    {callers: entry("a", "manager.example", "Discovery"), who: "a", patches: hook.Forbidden},
		"Entries":  {callers: entry("a", "manager.example", "Discovery") + entry("b", "manager", "GeneratePatches"), who: "a"},
		"Expired":  {callers: strings.Replace(entry("a", "manager", `"*"`), "{", `{expires: "2020-01-01T00:00:00Z", `, 1), who: id.String(), discovery: hook.Forbidden, patches: hook.Forbidden},
		"NoEntry":  {callers: entry("a", "other", `"*"`), who: id.String(), discovery: hook.Forbidden, patches: hook.Forbidden},
		"TokenOf":  {callers: "- {name: a, token: " + someToken + ", hooks: [\"*\"]}\n", who: id.String(), discovery: hook.Forbidden, patches: hook.Forbidden},
		"FlagWins": {config: Config{Names: []string{"manager"}}, callers: entry("a", "manager", "Discovery"), who: "manager"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tt.config
			c.Certificates = asking{}
			if tt.callers != "" {
				c.Callers = open(t, header+tt.callers, slog.New(slog.DiscardHandler))
			}
			g := NewGate(c)
			for h, want := range map[*catalog.Hook]hook.Kind{discovery: tt.discovery, patches: tt.patches} {
				admission, err := g.Admit(t.Context(), Credentials{TLS: state}, h)
				if (err != nil) != (want != hook.Internal) || err != nil && hook.KindOf(err) != want || admission.Caller != (Caller{tt.who, Certificate}) {
					t.Errorf("%s: %+v, %v, want %s and kind %s", h.Hook, admission.Caller, err, tt.who, want)
				}
			}
		})
	}
	certificate.NotAfter = time.Now().Add(-time.Second)
	if _, err := NewGate(Config{Certificates: asking{}}).Admit(t.Context(), Credentials{TLS: state}, discovery); hook.KindOf(err) != hook.Unauthenticated {
		t.Errorf("a certificate that has expired since the handshake: %v", err)
	}
}

// asking has authorities, and trusts every connection.
type asking struct{}

func (asking) AsksForCertificates() bool        { return true }
func (asking) Trusts(*tls.ConnectionState) bool { return true }

func open(t *testing.T, content string, logger *slog.Logger) *CallersFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), "callers.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenCallers(path, catalog.New(), logger)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCallersFollowTheirFile tests that a token counts from the moment it is in the file until it is removed, that a
// bad file changes nothing and is reported, and that Run leaves nothing behind.
func TestCallersFollowTheirFile(t *testing.T) {
	defer func() {
		if err := leaktest.Find(); err != nil {
			t.Error(err)
		}
	}()
	log := &process.Log{}
	line := func(name string) string {
		return "- {name: " + name + ", token: token-of-the-caller-" + name + ", hooks: [\"*\"]}\n"
	}
	f := open(t, header+line("a"), slog.New(slog.NewTextHandler(log, nil)))
	gate := NewGate(Config{Callers: f})
	discovery, _ := catalog.New().ByName("Discovery")
	knows := func(name string) bool {
		_, err := gate.Admit(t.Context(), Credentials{Authorization: []string{"Bearer token-of-the-caller-" + name}}, discovery)
		return err == nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	replace := func(content string) { // as a mounted Secret is replaced
		next := f.path + ".new"
		if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, f.path); err != nil {
			t.Fatal(err)
		}
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		process.EventuallySees(t, process.Patience, what, func() (string, bool) { return log.String(), is() })
	}
	if !knows("a") || knows("b") {
		t.Fatal("the gate does not know the first content")
	}
	replace(header + line("b"))
	eventually("b takes the place of a", func() bool { return knows("b") && !knows("a") })
	replace("kind: Callers")
	eventually("the mistake is reported", func() bool { return strings.Contains(log.String(), "file of callers cannot be used") })
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	eventually("the missing file is reported", func() bool { return strings.Contains(log.String(), "no such file") })
	if !knows("b") || knows("a") {
		t.Error("a bad file changes who may call")
	}
	replace(header + line("a"))
	eventually("the repaired file counts", func() bool { return knows("a") && !knows("b") })
	if strings.Contains(log.String(), "token-of") {
		t.Errorf("the log has a token:\n%s", log)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestCallersFileIsBounded tests files that are not to be read at all, or not to their end.
func TestCallersFileIsBounded(t *testing.T) {
	comment := func(n int) string { return header + "#" + strings.Repeat("x", n-len(header)-1) }
	for name, tt := range map[string]struct {
		write func(path string) error
		want  string
	}{
		"Largest":  {func(path string) error { return os.WriteFile(path, []byte(comment(limits.CallersFileBytes)), 0o600) }, ""},
		"TooLarge": {func(path string) error { return os.WriteFile(path, []byte(comment(limits.CallersFileBytes+1)), 0o600) }, "callers.yaml: larger than 1048576 bytes"},
		"Folder":   {func(path string) error { return os.Mkdir(path, 0o700) }, "callers.yaml: is a directory"},
		"Endless":  {func(path string) error { return os.Symlink("/dev/zero", path) }, "callers.yaml: not a regular file"},
		"Missing":  {func(string) error { return nil }, "no such file"},
	} {
		path := filepath.Join(t.TempDir(), "callers.yaml")
		if err := tt.write(path); err != nil {
			t.Fatal(err)
		}
		_, err := OpenCallers(path, catalog.New(), slog.New(slog.DiscardHandler))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
