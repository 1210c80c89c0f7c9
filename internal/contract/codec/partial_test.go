// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	golden "github.com/hookgate/hookgate/proto"
)

// samePartial decodes a body in all ways, and holds them against each other. It returns the partial message, or the error of
// all.
func samePartial(t *testing.T, c *Codec, body []byte, m proto.Message) (Partial, error) {
	t.Helper()
	whole, short := m.ProtoReflect().New().Interface(), m.ProtoReflect().New().Interface()
	complete, wantErr := c.DecodeGuarded(body, whole, Guard{})
	found, err := c.DecodePartial(body, short, Guard{})
	if !reflect.DeepEqual(err, wantErr) {
		t.Fatalf("%.2000s\nthe partial: %#v\nthe message: %#v", body, err, wantErr)
	}
	kept := m.ProtoReflect().New().Interface()
	keeps, keepErr := c.DecodeElements(body, kept, Guard{})
	if !reflect.DeepEqual(keepErr, wantErr) {
		t.Fatalf("%.2000s\nwith its elements: %#v\nthe message: %#v", body, keepErr, wantErr)
	}
	if err != nil {
		return found, err
	}
	sameElements(t, body, kept, whole, keeps)
	keeps.Elements = nil
	if !reflect.DeepEqual(keeps, found) {
		t.Fatalf("%.2000s\ngot %+v, with its elements %+v", body, found, keeps)
	}
	namespaces := leaveOut(whole, found.Skipped)
	if found.Complete != complete || found.Skipped && !complete || !slices.Equal(found.Namespaces, namespaces) {
		t.Fatalf("%.2000s\ngot %+v, want complete %t, namespaces %q", body, found, complete, namespaces)
	}
	if !proto.Equal(whole, short) {
		t.Fatalf("%.2000s\nthe partial: %v\nthe message: %v", body, short, whole)
	}
	return found, nil
}

// sameElements holds a partial message together with its elements, as protobuf, against the whole message.
func sameElements(t *testing.T, body []byte, partial, whole proto.Message, found Partial) {
	t.Helper()
	wire, err := proto.Marshal(partial)
	if err != nil {
		t.Fatalf("%.2000s\nthe partial: %v", body, err)
	}
	if found.Skipped != (found.Elements != nil) {
		t.Fatalf("%.2000s\nskipped %t, but elements %v", body, found.Skipped, found.Elements)
	}
	if found.Elements != nil {
		var b bytes.Buffer
		if n, err := found.Elements.WriteTo(&b); err != nil || int(n) != b.Len() || b.Len() != found.Elements.Size() {
			t.Fatalf("%.2000s\nwrote %d bytes of %d: %v", body, n, found.Elements.Size(), err)
		}
		wire = append(wire, b.Bytes()...)
	}
	got := whole.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(wire, got); err != nil {
		t.Fatalf("%.2000s\nits protobuf: %v", body, err)
	}
	if !proto.Equal(got, whole) {
		t.Fatalf("%.2000s\nits protobuf: %v\nthe message: %v", body, got, whole)
	}
}

// leaveOut takes the items out of a message if they are skipped, and returns the namespaces of their holders.
func leaveOut(m proto.Message, skipped bool) (namespaces []string) {
	add := func(holder *hooksv1alpha1.HolderReference) {
		if !slices.Contains(namespaces, holder.GetNamespace()) {
			namespaces = append(namespaces, holder.GetNamespace())
		}
	}
	if !skipped {
		return nil
	}
	switch m := m.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		for _, item := range m.GetItems() {
			add(item.GetHolderReference())
		}
		m.Items = nil
	case *hooksv1alpha1.ValidateTopologyRequest:
		for _, item := range m.GetItems() {
			add(item.GetHolderReference())
		}
		m.Items = nil
	}
	return namespaces
}

// TestPartialOfGoldenVectors reads every vector, and everything that is one but for a byte if it has items that are not
// built.
func TestPartialOfGoldenVectors(t *testing.T) {
	hooks, err := catalog.With(catalog.Infrastructure()...)
	if err != nil {
		t.Fatal(err)
	}
	c := New(hooks)
	for _, h := range hooks.Hooks() {
		for kind, m := range map[string]proto.Message{
			"request": h.Request.New().Interface(), "response": h.Response.New().Interface(),
		} {
			name := strings.ToLower(h.Hook) + "." + kind
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join("..", "..", "..", "proto", "testdata", golden.Directory(h.GroupVersionHook), name+".json")
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				found, err := samePartial(t, c, text, m)
				if err != nil {
					t.Fatal(err)
				}
				skipped := name == "generatepatches.request" || name == "validatetopology.request"
				if found.Skipped != skipped {
					t.Errorf("got %+v", found)
				}
				if skipped {
					mutate(t, c, text, m)
				}
			})
		}
	}
}

// mutate reads what becomes of a body if one byte of it is cut off with all that follow, is missing, or is another. Of
// a large body, it takes some of its bytes.
func mutate(t *testing.T, c *Codec, text []byte, m proto.Message) {
	t.Helper()
	refused := 0
	read := func(body []byte) {
		if _, err := samePartial(t, c, body, m); err != nil {
			refused++
		}
	}
	step := len(text)/60 + 1
	for i := 0; i < len(text); i += step {
		read(text[:i])
		read(slices.Delete(slices.Clone(text), i, i+1))
		for _, b := range []byte("{}[]\",:\\ n0x\x00\xff") {
			body := bytes.Clone(text)
			body[i] = b
			read(body)
		}
	}
	if refused < len(text)/step {
		t.Errorf("%d bodies were refused", refused)
	}
}

// TestPartialOfSmallBody reads everything that is a body with all members of an item but for one byte.
func TestPartialOfSmallBody(t *testing.T) {
	body := patchesHead + `"items":[{"uid":"\u0061é","holderReference":{"apiVersion":"v","kind":null,"namespace":"a","name":"b",` +
		`"new":[1]},"object":{"a":[true,-1.5e3]},"variables":[{"name":"x","value":"\ud83d\ude00"},{}],"n\u0065w":{}},{}],"variables":[]}`
	c, m := New(catalog.New()), &hooksv1alpha1.GeneratePatchesRequest{}
	if found, err := samePartial(t, c, []byte(body), m); err != nil || !found.Skipped {
		t.Fatalf("got %+v, %v", found, err)
	}
	mutate(t, c, []byte(body), m)
}

// TestPartialOfRandomBodies reads bodies with members that the schema does not know.
func TestPartialOfRandomBodies(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newSource(seedOf(e.name) + 4)
			tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
			for range rounds() {
				body := marshal(s.envelope(e)) // kind and apiVersion come first
				m := e.message.New().Interface()
				if _, err := samePartial(t, c, body, m); err != nil {
					t.Fatal(err)
				}
				tree := parse(t, body)
				inject(s, tab, tree.(map[string]any))
				if _, err := samePartial(t, c, marshal(tree), m); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

const patchesHead = `{"kind":"GeneratePatchesRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",`

func TestDecodePartial(t *testing.T) {
	c := New(catalog.New())
	for name, tc := range map[string]struct {
		reason     string
		body       string
		skipped    bool
		namespaces []string
		want       string // the error
	}{
		"Items":       {"", patchesHead + `"items":[{"holderReference":{"namespace":"a"},"object":{}},{"holderReference":{"namespace":"a"}}]}`, true, []string{"a"}, ""},
		"InOrder":     {"each once", patchesHead + `"items":[{"holderReference":{"namespace":"b"}},{"holderReference":{"namespace":"a"}},{"holderReference":{"namespace":"b"}}]}`, true, []string{"b", "a"}, ""},
		"None":        {"neither a holder nor a namespace is required", patchesHead + `"items":[{"holderReference":{"namespace":"a"}},{},{"holderReference":{}},{"holderReference":null},{"holderReference":{"namespace":null}}]}`, true, []string{"a", ""}, ""},
		"Escaped":     {"names and values", patchesHead + `"\u0069tems":[{"holder\u0052eference":{"namesp\u0061ce":"\u0061"}}]}`, true, []string{"a"}, ""},
		"Elsewhere":   {"a member that the schema does not know is none of the holder", patchesHead + `"items":[{"namespace":"a","object":{"holderReference":{"namespace":"b"}}}]}`, true, []string{""}, ""},
		"Empty":       {"nothing is missing", patchesHead + `"items":[]}`, false, nil, ""},
		"Null":        {"nothing is missing", patchesHead + `"items":null}`, false, nil, ""},
		"KindLast":    {"it could be one that cannot be sent on", `{"items":[{}],` + patchesHead[1:len(patchesHead)-1] + `}`, false, nil, ""},
		"KindBetween": {"", `{"kind":"GeneratePatchesRequest","items":[{}],"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"}`, false, nil, ""},
		"NoKind":      {"", `{"items":[{}]}`, false, nil, ""},
		"Twice":       {"", patchesHead + `"items":[{}],"items":[]}`, false, nil, "items: occurs twice in one object"},
		"MemberTwice": {"", patchesHead + `"items":[{},{"uid":"a","object":{},"uid":"b"}]}`, false, nil, "items[1].uid: occurs twice in one object"},
		"NullTwice":   {"", patchesHead + `"items":[{"uid":null,"uid":null}]}`, false, nil, "items[0].uid: occurs twice in one object"},
		"OtherCase":   {"", patchesHead + `"items":[{"holderReference":{"namespace":"a","NameSpace":"b"}}]}`, false, nil, `items[0].holderReference.NameSpace: differs from "namespace" only in case`},
		"OtherTwice":  {"", patchesHead + `"items":[{"x y":1,"x\u0020y":2}]}`, false, nil, `items[0]."x y": occurs twice in one object`},
		"Deep":        {"", patchesHead + `"items":[{"variables":[{"name":"a","value":{"a":1,"a":2},"new":0},{"new":1,"new":2}]}]}`, false, nil, "items[0].variables[1].new: occurs twice in one object"},
		"Type":        {"", patchesHead + `"items":[{"variables":{}}]}`, false, nil, "items[0].variables: want an array, got an object"},
		"Element":     {"", patchesHead + `"items":[{},null]}`, false, nil, "items[1]: want an object, got null"},
		"String":      {"", patchesHead + `"items":[{"holderReference":{"namespace":1}}]}`, false, nil, "items[0].holderReference.namespace: want a string, got a number"},
		"Surrogate":   {"", patchesHead + `"items":[{"uid":"\ud800"}]}`, false, nil, "invalid JSON at byte 104: string with half of a surrogate pair"},
		"UTF8":        {"", patchesHead + "\"items\":[{\"object\":\"\xff\"}]}", false, nil, "invalid JSON at byte 108: not UTF-8"},
		"Object":      {"", patchesHead + `"items":[{"object":{"a":}}]}`, false, nil, "invalid JSON at byte 112: unexpected '}', want a value"},
	} {
		m := &hooksv1alpha1.GeneratePatchesRequest{}
		found, err := samePartial(t, c, []byte(tc.body), m)
		if err != nil && err.Error() != tc.want || err == nil && tc.want != "" {
			t.Errorf("%s: got error %v, want %s", name, err, tc.want)
		}
		if found.Skipped != tc.skipped || !slices.Equal(found.Namespaces, tc.namespaces) {
			t.Errorf("%s: %s: got %+v", name, tc.reason, found)
		}
	}
}

// TestPartialAtTheLimits holds that limits count what is not built.
func TestPartialAtTheLimits(t *testing.T) {
	c := New(catalog.New())
	deep := func(levels int) string {
		return `"items":[{"variables":[{"value":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}]}]}`
	}
	const around = 5 // request, items, item, variables, variable
	for name, tc := range map[string]struct {
		most, more string
		want       string
	}{
		"Items": {
			`"items":[` + repeated(limits.Elements, `{}`) + `]}`, `"items":[` + repeated(limits.Elements+1, `{}`) + `]}`, ErrTooMany.Error(),
		},
		"Variables": {
			`"items":[{"variables":[` + repeated(limits.Elements-1, `{}`) + `]}]}`,
			`"items":[{"variables":[` + repeated(limits.Elements, `{}`) + `]}]}`, ErrTooMany.Error(),
		},
		"Unknown": {
			`"items":[{` + repeated(limits.Elements-1, `"%d":0`) + `}]}`, `"items":[{` + repeated(limits.Elements, `"%d":0`) + `}]}`,
			ErrTooMany.Error(),
		},
		"Depth": {deep(limits.JSONDepth - around), deep(limits.JSONDepth - around + 1), "nested deeper than 1000"},
	} {
		m := &hooksv1alpha1.GeneratePatchesRequest{}
		if found, err := samePartial(t, c, []byte(patchesHead+tc.most), m); err != nil || !found.Skipped {
			t.Errorf("%s: got %v at the limit", name, err)
		}
		if _, err := samePartial(t, c, []byte(patchesHead+tc.more), m); err == nil || !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%s: got %v one beyond", name, err)
		}
	}
}

// TestPartialReserves holds that memory is reserved for what is kept, and not for what is not built.
func TestPartialReserves(t *testing.T) {
	c := New(catalog.New())
	long := strings.Repeat("x", 1<<20)
	for name, tc := range map[string]struct {
		body  string
		least int64 // bytes to be reserved
	}{
		"Items":      {`"items":[` + repeated(10_000, `{"uid":"%d","variables":[{}]}`) + `]}`, 0},
		"String":     {`"items":[{"uid":"` + long + `"}]}`, 0},
		"Object":     {`"items":[{"object":"` + long + `"}]}`, 0},
		"Escaped":    {`"items":[{"uid":"\t` + long + `"}]}`, 1 << 20},
		"Unknown":    {`"items":[{` + repeated(10_000, `"%d":0`) + `}]}`, 1 << 20},
		"Name":       {`"items":[{"` + long + `":0}]}`, 1 << 20},
		"Namespaces": {`"items":[` + repeated(20_000, `{"holderReference":{"namespace":"%d"}}`) + `]}`, 1 << 20},
		"Namespace":  {`"items":[{"holderReference":{"namespace":"` + long + `"}}]}`, 1 << 20},
		"Settings":   {`"items":[{}],"settings":{"a":"` + long + `"}}`, 1 << 20},
	} {
		var reserved int64
		g := Guard{Reserve: func(n int64) error { reserved += n; return nil }}
		if _, err := c.DecodePartial([]byte(patchesHead+tc.body), &hooksv1alpha1.GeneratePatchesRequest{}, g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if reserved < tc.least || tc.least == 0 && reserved > 0 {
			t.Errorf("%s: %d bytes were reserved, want at least %d", name, reserved, tc.least)
		}
		full := errors.New("the memory is used up")
		g.Reserve = func(int64) error { return full }
		_, err := c.DecodePartial([]byte(patchesHead+tc.body), &hooksv1alpha1.GeneratePatchesRequest{}, g)
		if tc.least > 0 && !errors.Is(err, full) || tc.least == 0 && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestElementsReserve holds that memory is reserved for elements that are kept, but for the texts in the body.
func TestElementsReserve(t *testing.T) {
	c := New(catalog.New())
	long := strings.Repeat("x", 1<<20)
	for name, tc := range map[string]struct {
		body        string
		least, most int64 // bytes to be reserved
	}{
		"String":  {`"items":[{"uid":"` + long + `"}]}`, 0, 0},
		"Object":  {`"items":[{"object":"` + long + `"}]}`, 0, 0},
		"Items":   {`"items":[` + repeated(10_000, `{"uid":"%d","variables":[{}]}`) + `]}`, 3 * 10_000 * partSize, 1 << 20},
		"Escaped": {`"items":[{"uid":"\t` + long + `"}]}`, 3 << 20, 4 << 20},
		"Name":    {`"items":[{"` + long + `":0}]}`, 3 << 20, 5 << 20},
	} {
		var reserved int64
		g := Guard{Reserve: func(n int64) error { reserved += n; return nil }}
		if _, err := c.DecodeElements([]byte(patchesHead+tc.body), &hooksv1alpha1.GeneratePatchesRequest{}, g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if reserved < tc.least-meterStep || reserved > tc.most {
			t.Errorf("%s: %d bytes were reserved, want %d to %d", name, reserved, tc.least, tc.most)
		}
		full := errors.New("the memory is used up")
		g.Reserve = func(int64) error { return full }
		_, err := c.DecodeElements([]byte(patchesHead+tc.body), &hooksv1alpha1.GeneratePatchesRequest{}, g)
		if tc.least > 0 && !errors.Is(err, full) || tc.least == 0 && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestElementsAreWrittenAsFarAsPossible holds that the first error ends writing.
func TestElementsAreWrittenAsFarAsPossible(t *testing.T) {
	body := []byte(patchesHead + `"items":[` + repeated(100, `{"uid":"%d"}`) + `]}`)
	found, err := New(catalog.New()).DecodeElements(body, &hooksv1alpha1.GeneratePatchesRequest{}, Guard{})
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	if n, err := found.Elements.WriteTo(&limitedWriter{left: 50, err: full}); n != 50 || !errors.Is(err, full) {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
}

// limitedWriter fails after some bytes.
type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	if w.left -= n; n < len(p) {
		return n, w.err
	}
	return n, nil
}

// TestPartialLooksAtTheDeadline holds that a large body is not read to its end once its context is done.
func TestPartialLooksAtTheDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := patchesHead + `"items":[` + repeated(90_000, `{"uid":""}`) + `]}`
	_, err := New(catalog.New()).DecodePartial([]byte(body), &hooksv1alpha1.GeneratePatchesRequest{}, Guard{Step: ctx.Err})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

// TestPartialAliasesNothing overwrites the body: what is known of its elements must not change.
func TestPartialAliasesNothing(t *testing.T) {
	body := []byte(patchesHead + `"items":[{"holderReference":{"namespace":"team-a"}}]}`)
	found, err := New(catalog.New()).DecodePartial(body, &hooksv1alpha1.GeneratePatchesRequest{}, Guard{})
	clear(body)
	if err != nil || !slices.Equal(found.Namespaces, []string{"team-a"}) {
		t.Errorf("got %q, %v", found.Namespaces, err)
	}
}

// FuzzPartial reads bodies of the messages that have partial messages in both ways.
func FuzzPartial(f *testing.F) {
	c := New(catalog.New())
	requests := []proto.Message{&hooksv1alpha1.GeneratePatchesRequest{}, &hooksv1alpha1.ValidateTopologyRequest{}}
	for i, e := range envelopes(f) {
		for which, m := range requests {
			if e.message != m.ProtoReflect().Type() {
				continue
			}
			s := newSource(int64(i))
			for range 5 {
				f.Add(uint8(which), []byte(marshal(s.envelope(e))))
			}
			head := strings.ReplaceAll(patchesHead, "GeneratePatchesRequest", e.name)
			f.Add(uint8(which), []byte(head+`"items":[{"new":1,"n\u0065w":2}]}`))
			f.Add(uint8(which), []byte(head+`"items":[{"holderReference":{"namespace":"\ud83d\ude00","x":[]},"uid":null}],"variables":[{}]}`))
		}
	}
	f.Add(uint8(0), requestItems(2))
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		m := requests[int(which)%len(requests)]
		_, _ = samePartial(t, c, body, m) // the error is compared
		short := m.ProtoReflect().New().Interface()
		decodeMemory.Check(t, len(body), func() { _, _ = c.DecodePartial(body, short, Guard{}) })
		proto.Reset(short)
		decodeMemory.Check(t, len(body), func() { _, _ = c.DecodeElements(body, short, Guard{}) })
	})
}

// TestPartSize holds that as much is reserved for a part as it takes.
func TestPartSize(t *testing.T) {
	if size := reflect.TypeFor[part]().Size(); size != partSize {
		t.Errorf("a part has %d bytes", size)
	}
}
