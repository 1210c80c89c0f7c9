// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// The type of the file.
const (
	callersAPIVersion = "hookgate.dev/v1alpha1"
	callersKind       = "Callers"
)

// allHooks allows every hook.
const allHooks = "*"

// leastToken is the length of the shortest token in plain text: shorter ones can be guessed.
const leastToken = limits.LeastTokenBytes

// callers is the content of a file of callers. It is immutable.
type callers struct{ entries []entry }

// entry is one caller.
type entry struct {
	Name             string
	certificateNames []string
	token            *[sha256.Size]byte
	expires          time.Time // zero for never
	hooks            map[string]bool
	everything       bool
}

// document is the file as it is written.
type document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Callers    []stated `json:"callers"`
}

// stated is a caller as it is written.
type stated struct {
	Name             string   `json:"name"`
	CertificateNames []string `json:"certificateNames"`
	Token            string   `json:"token"`
	TokenSHA256      string   `json:"tokenSHA256"`
	Expires          string   `json:"expires"`
	Hooks            []string `json:"hooks"`
}

// parseCallers reads the content of a file. Its errors have no token in them.
func parseCallers(data []byte, hooks *catalog.Catalog) (*callers, error) {
	var d document
	if err := yaml.UnmarshalStrict(data, &d); err != nil {
		return nil, fmt.Errorf("is not a file of callers: %s", text.Cut(err.Error(), limits.ConditionMessageBytes))
	}
	if d.APIVersion != callersAPIVersion || d.Kind != callersKind {
		return nil, fmt.Errorf("apiVersion and kind: want %s and %s, got %q and %q", callersAPIVersion, callersKind,
			text.Cut(d.APIVersion, limits.CallerNameBytes), text.Cut(d.Kind, limits.CallerNameBytes))
	}
	if len(d.Callers) > limits.Callers {
		return nil, fmt.Errorf("callers: has %d entries, and may have at most %d", len(d.Callers), limits.Callers)
	}
	c := &callers{}
	var errs []error
	names, tokens := map[string]bool{}, map[[sha256.Size]byte]string{}
	for i := range d.Callers {
		e, err := d.Callers[i].entry(hooks)
		switch {
		case err != nil:
		case names[e.Name]:
			err = fmt.Errorf("name: %q occurs twice", e.Name)
		case e.token != nil && tokens[*e.token] != "":
			err = fmt.Errorf("has the same token as caller %q", tokens[*e.token])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("callers[%d]: %w", i, err))
			continue
		}
		names[e.Name] = true
		if e.token != nil {
			tokens[*e.token] = e.Name
		}
		c.entries = append(c.entries, *e)
	}
	return c, errors.Join(errs...)
}

// entry returns the caller, if it is well described.
func (s *stated) entry(hooks *catalog.Catalog) (*entry, error) {
	e := &entry{Name: s.Name, certificateNames: s.CertificateNames, hooks: map[string]bool{}}
	switch {
	case s.Name == "":
		return nil, errors.New("name: required, because the log shows it")
	case DisplayName(s.Name) != s.Name:
		return nil, fmt.Errorf("name: longer than %d bytes, or with control characters", limits.CallerNameBytes)
	case len(s.Hooks) == 0:
		return nil, fmt.Errorf("hooks: required: give names of hooks, or %q for all", allHooks)
	case s.Token != "" && s.TokenSHA256 != "":
		return nil, errors.New("token and tokenSHA256: give only one of them")
	case s.Token == "" && s.TokenSHA256 == "" && len(s.CertificateNames) == 0:
		return nil, errors.New("has nothing to identify the caller by: give certificateNames, tokenSHA256 or token")
	case slices.Contains(s.CertificateNames, ""):
		return nil, errors.New("certificateNames: a name is empty")
	}
	for _, name := range s.Hooks {
		h, ok := hooks.ByName(name)
		switch {
		case name == allHooks:
			e.everything = true
		case ok:
			e.hooks[h.Hook] = true
		default:
			return nil, unknownHook(text.Cut(name, limits.CallerNameBytes), hooks)
		}
	}
	if s.Expires != "" {
		var err error
		if e.expires, err = time.Parse(time.RFC3339, s.Expires); err != nil {
			return nil, errors.New("expires: want a time such as 2030-01-31T00:00:00Z")
		}
	}
	switch {
	case s.Token != "" && (len(s.Token) < leastToken || len(s.Token) > limits.TokenBytes):
		return nil, fmt.Errorf("token: want %d to %d bytes: a shorter token can be guessed", leastToken, limits.TokenBytes)
	case s.Token != "":
		digest := sha256.Sum256([]byte(s.Token))
		e.token = &digest
	case s.TokenSHA256 != "":
		digest, err := hex.DecodeString(s.TokenSHA256)
		if err != nil || len(digest) != sha256.Size {
			return nil, errors.New("tokenSHA256: want 64 hexadecimal digits: printf %s TOKEN | sha256sum")
		}
		e.token = (*[sha256.Size]byte)(digest)
	}
	return e, nil
}

// unknownHook returns the error about a name that no hook has.
func unknownHook(name string, hooks *catalog.Catalog) error {
	var names []string
	for _, h := range hooks.Hooks() {
		names = append(names, h.Hook)
	}
	if meant := text.Nearest(name, names); meant != "" {
		return fmt.Errorf("hooks: no hook %q: did you mean %q?", name, meant)
	}
	return fmt.Errorf("hooks: no hook %q: see \"hookgate call --help\" for their names", name)
}

// byToken returns the caller with the token, or nil. How long it takes does not depend on the tokens.
func (c *callers) byToken(token string) *entry {
	digest := sha256.Sum256([]byte(token))
	found := -1
	for i := range c.entries {
		if t := c.entries[i].token; t != nil {
			found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], t[:]), i, found)
		}
	}
	if found < 0 {
		return nil
	}
	return &c.entries[found]
}

// byNames returns the callers whose certificate has one of the names and that have not expired.
func (c *callers) byNames(names []string, now time.Time) []*entry {
	var found []*entry
	for i := range c.entries {
		e := &c.entries[i]
		named := func(name string) bool { return slices.Contains(e.certificateNames, name) }
		if slices.ContainsFunc(names, named) && !e.expired(now) {
			found = append(found, e)
		}
	}
	return found
}

// expired reports whether the caller is no longer one.
func (e *entry) expired(now time.Time) bool { return !e.expires.IsZero() && !now.Before(e.expires) }

// allows reports whether the caller may call h; nil is no hook.
func (e *entry) allows(h *catalog.Hook) bool { return h == nil || e.everything || e.hooks[h.Hook] }
