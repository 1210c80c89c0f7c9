// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// FuzzParse compares values with those of encoding/json: built at once, and opened level by level.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		patchedObject, ` [ 1 , "b\u00e9\ud83d" , { "c" : [ ] } ] `, `{"a":1,"a":2}`, `{"a":1,}`, `[1 2]`, `{} {}`, `{"a"`, `nul`, `-`, ``, "\"\xff\"",
		strings.Repeat(`{"a":`, 20) + `[{"b":1.50}]` + strings.Repeat("}", 20),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		wantErr := d.Decode(&want)
		if _, more := d.Token(); wantErr == nil && !errors.Is(more, io.EOF) {
			wantErr = errors.New("more than one value")
		}
		var m Meter
		got, err := m.Parse(text)
		if err != nil && strings.HasSuffix(err.Error(), "nested deeper than 1000") {
			return
		}
		opened, openErr := m.Open(Raw(text), 0)
		if openErr == nil {
			opened, openErr = m.Read(opened)
		}
		if (err != nil) != (wantErr != nil) || (openErr != nil) != (wantErr != nil) {
			t.Fatalf("%q: got %v and %v, want %v", text, err, openErr, wantErr)
		}
		if err == nil && (!cmp.Equal(got, want) || !cmp.Equal(opened, want)) {
			t.Errorf("%q: got %v and %v, want %v", text, got, opened, want)
		}
	})
}

// What is not patched is neither built nor counted, and keeps its notation; deep values are built at once.
func TestOpen(t *testing.T) {
	var m Meter
	v, err := m.Open(Raw(`{"b":{ "c" : [1.50] },"a":[{},{ }]}`), 0)
	if err != nil || m.elements != 2 {
		t.Fatalf("got %v and %d elements", err, m.elements)
	}
	if got, want := string(Append(nil, v)), `{"a":[{},{ }],"b":{ "c" : [1.50] }}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if v, err = m.Open(Raw(`{"a":{ }}`), openLevels); err != nil || string(Append(nil, v)) != `{"a":{}}` {
		t.Errorf("got %s and %v", Append(nil, v), err)
	}
}

// Values are bounded in number and depth.
func TestParseIsBounded(t *testing.T) {
	m := Meter{elements: limits.ObjectElements}
	if _, err := m.Parse([]byte(`[1]`)); hook.KindOf(err) != hook.TooLarge {
		t.Errorf("got %v", err)
	}
	deep := strings.Repeat("[", limits.JSONDepth+1) + strings.Repeat("]", limits.JSONDepth+1)
	for _, parse := range []func([]byte) (any, error){Guard{}.Parse, new(Meter).Parse} {
		if _, err := parse([]byte(deep)); err == nil || err.Error() != "invalid JSON at byte 1000: nested deeper than 1000" {
			t.Errorf("got %v", err)
		}
	}
	if _, err := (Guard{}).Parse([]byte(deep[1 : len(deep)-1])); err != nil {
		t.Error(err)
	}
}

// The objects on the way to what is patched are opened in one pass; a path that leads elsewhere opens nothing.
func TestOpenTo(t *testing.T) {
	const text = `{"spec":{"template":{"spec":{"a":{ }},"x":{ }},"spec":{ }},"template":{ },"list":[{"spec":{ }}]}`
	var m Meter
	v, err := m.OpenTo([]byte(text), "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"spec": map[string]any{
			"template": map[string]any{"spec": map[string]any{"a": Raw(`{ }`)}, "x": Raw(`{ }`)}, "spec": Raw(`{ }`),
		},
		"template": Raw(`{ }`), "list": Raw(`[{"spec":{ }}]`),
	}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
