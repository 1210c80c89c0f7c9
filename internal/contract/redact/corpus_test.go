// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/hookgate/hookgate/hook"
)

// corpus returns the texts of a file, by their names.
func corpus(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, part := range strings.Split(string(text), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		if all[name] != "" {
			t.Fatalf("%s has two texts %q", file, name)
		}
		all[name] = strings.TrimSuffix(text, "\n")
	}
	if len(all) < 40 {
		t.Fatalf("%s has %d texts", file, len(all))
	}
	return all
}

// form is a way in which a text may stand in what is recorded, reported and told.
type form struct {
	name  string
	write func(text string) string
	read  func(written string) (string, bool) // what write was given
}

func based(name string, e *base64.Encoding, width int, newline string) form {
	return form{name, func(text string) string {
		s := e.EncodeToString([]byte(text))
		var b strings.Builder
		for width > 0 && len(s) > width {
			b.WriteString(s[:width] + newline)
			s = s[width:]
		}
		return b.String() + s + newline
	}, func(written string) (string, bool) {
		b, err := e.DecodeString(strings.NewReplacer("\r", "", "\n", "", `\n`, "", " ", "").Replace(written))
		return string(b), err == nil
	}}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func unzipped(text string) (string, bool) {
	r, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return "", false
	}
	b, err := io.ReadAll(r)
	return string(b), err == nil
}

func jsoned(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// forms are the ways of which each text of the corpus is written in every one.
var forms = []form{
	{"Text", func(text string) string { return text }, func(s string) (string, bool) { return s, true }},
	{
		"JSON", func(text string) string { return `{"spec":{"note":` + jsoned(text) + `,"n":1}}` },
		func(written string) (string, bool) {
			var read struct{ Spec struct{ Note string } }
			err := json.Unmarshal([]byte(written), &read)
			return read.Spec.Note, err == nil
		},
	},
	{
		"YAML", func(text string) string {
			b, _ := yaml.Marshal(map[string]any{"spec": map[string]any{"note": text, "n": 1}})
			return string(b)
		},
		func(written string) (string, bool) {
			var read struct{ Spec struct{ Note string } }
			err := yaml.Unmarshal([]byte(written), &read)
			return read.Spec.Note, err == nil
		},
	},
	{
		"Quoted", func(text string) string { return "time=1 level=ERROR msg=" + strconv.Quote(text) + " took=3" },
		func(written string) (string, bool) {
			s, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(written, "time=1 level=ERROR msg="), " took=3"))
			return s, err == nil
		},
	},
	based("Base64", base64.StdEncoding, 0, ""),
	based("Base64Newline", base64.StdEncoding, 0, "\n"),
	based("Base64Unpadded", base64.RawStdEncoding, 0, ""),
	based("Base64URL", base64.URLEncoding, 0, ""),
	based("Base64URLUnpadded", base64.RawURLEncoding, 0, ""),
	based("Base64At64", base64.StdEncoding, 64, "\n"),
	based("Base64At76", base64.StdEncoding, 76, "\r\n"),
	based("Base64Indented", base64.StdEncoding, 60, "\n      "),
	based("Base64Quoted", base64.StdEncoding, 64, `\n`),
	{
		"Base64Twice", func(text string) string { return b64(b64(text)) },
		func(written string) (string, bool) {
			once, err := base64.StdEncoding.DecodeString(written)
			if err != nil {
				return "", false
			}
			twice, err := base64.StdEncoding.DecodeString(string(once))
			return string(twice), err == nil
		},
	},
	{
		"Gzip", func(text string) string { return b64(zipped(text)) },
		func(written string) (string, bool) {
			once, err := base64.StdEncoding.DecodeString(written)
			if err != nil {
				return "", false
			}
			return unzipped(string(once))
		},
	},
	{
		"DataURL", func(text string) string { return "data:text/plain;charset=utf-8;base64," + b64(text) },
		func(written string) (string, bool) {
			b, err := base64.StdEncoding.DecodeString(written[strings.LastIndexByte(written, ',')+1:])
			return string(b), err == nil
		},
	},
	{
		"Percent", func(text string) string { return "data:," + url.PathEscape(text) },
		func(written string) (string, bool) {
			s, err := url.PathUnescape(strings.TrimPrefix(written, "data:,"))
			return s, err == nil
		},
	},
	{
		"InAMessage", func(text string) string { return "write file: cannot decode " + b64(text) + ": no such key" },
		func(written string) (string, bool) {
			s := strings.TrimSuffix(strings.TrimPrefix(written, "write file: cannot decode "), ": no such key")
			b, err := base64.StdEncoding.DecodeString(s)
			return string(b), err == nil
		},
	},
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// removers are the two ways in which secrets are removed from a text.
var removers = map[string]func(t *testing.T, text string) string{
	"Text": func(_ *testing.T, text string) string { return Text(text) },
	"Redactor": func(t *testing.T, text string) string {
		r, err := NewRedactor(nil)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := r.Append(nil, []byte(`{"items":[{"object":{"spec":`+jsoned(text)+`}}]}`), hook.GroupHook{})
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Items []struct{ Object struct{ Spec string } }
		}
		if err := json.Unmarshal(out, &read); err != nil {
			t.Fatal(err)
		}
		return read.Items[0].Object.Spec
	},
}

var marked = regexp.MustCompile(`«([^»]*)»`)

// TestSecrets writes each text with secrets in each form: none of them is left, and what is left has the form.
func TestSecrets(t *testing.T) {
	for name, text := range corpus(t, "secrets.txt") {
		var secrets []string
		for _, m := range marked.FindAllStringSubmatch(text, -1) {
			secrets = append(secrets, m[1])
		}
		if len(secrets) == 0 {
			t.Errorf("%s has no secret", name)
		}
		plain := strings.NewReplacer("«", "", "»", "").Replace(text)
		for _, f := range forms {
			for place, remove := range removers {
				t.Run(name+"/"+f.name+"/"+place, func(t *testing.T) {
					written := f.write(plain)
					got := remove(t, written)
					if got == written {
						t.Fatalf("nothing is removed from\n%s", written)
					}
					shown, ok := f.read(got)
					if !ok {
						shown = got
					}
					for _, s := range secrets {
						if !leaves(shown, plain, s) {
							continue
						}
						t.Errorf("%q stays in\n%s", s, shown)
					}
				})
			}
		}
	}
}

// leaves reports whether a secret of a text is in what is left of it. A short one may be in other words, too.
func leaves(left, text, secret string) bool {
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); line != "" && strings.Count(left, line) > 0 &&
			strings.Count(left, line) >= strings.Count(text, line) {
			return true
		}
	}
	return false
}

// TestOrdinary writes each text without secrets in each form: it stays.
func TestOrdinary(t *testing.T) {
	for name, text := range corpus(t, "ordinary.txt") {
		for _, f := range forms {
			for place, remove := range removers {
				t.Run(name+"/"+f.name+"/"+place, func(t *testing.T) {
					if written := f.write(text); remove(t, written) != written {
						t.Errorf("%s\nbecame\n%s", written, remove(t, written))
					}
				})
			}
		}
	}
}
