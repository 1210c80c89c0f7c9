// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// TestDepthLimit nests values at every level of an envelope: the levels of the envelope count.
func TestDepthLimit(t *testing.T) {
	tests := map[string]struct {
		before, after string
		around        int // levels of the envelope around the value
		into          proto.Message
	}{
		"Object":         {`{"cluster":`, `}`, 1, &hooksv1alpha1.BeforeClusterCreateRequest{}},
		"Unknown":        {`{"new":`, `}`, 1, &hooksv1alpha1.BeforeClusterCreateRequest{}},
		"ObjectInObject": {`{"current":{"machine":`, `}}`, 2, &hooksv1alpha1.CanUpdateMachineRequest{}},
		"UnknownInside":  {`{"current":{"new":`, `}}`, 2, &hooksv1alpha1.CanUpdateMachineRequest{}},
		"ObjectInList":   {`{"items":[{"object":`, `}]}`, 3, &hooksv1alpha1.GeneratePatchesRequest{}},
		"UnknownInList":  {`{"items":[{"new":`, `}]}`, 3, &hooksv1alpha1.GeneratePatchesRequest{}},
		"JSONInLists":    {`{"items":[{"variables":[{"value":`, `}]}]}`, 5, &hooksv1alpha1.GeneratePatchesRequest{}},
		"UnknownInLists": {`{"items":[{"variables":[{"new":`, `}]}]}`, 5, &hooksv1alpha1.GeneratePatchesRequest{}},
	}
	c := New(catalog.New())
	for name, tc := range tests {
		for inner, nested := range map[string]func(int) string{
			"arrays":  func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) },
			"objects": func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) },
		} {
			t.Run(name+"/"+inner, func(t *testing.T) {
				room := limits.JSONDepth - tc.around
				m := tc.into.ProtoReflect().New().Interface()
				if err := c.Decode([]byte(tc.before+nested(room)+tc.after), m); err != nil {
					t.Errorf("%d levels: %v", limits.JSONDepth, err)
				}
				err := c.Decode([]byte(tc.before+nested(room+1)+tc.after), tc.into.ProtoReflect().New().Interface())
				if err == nil || !strings.HasSuffix(err.Error(), "nested deeper than 1000") {
					t.Errorf("%d levels: got %v, want an error", limits.JSONDepth+1, err)
				}
			})
		}
	}
}

// TestDepthLimitOfCheck leaves room for the levels that an envelope can have around an object.
func TestDepthLimitOfCheck(t *testing.T) {
	c := New(catalog.New())
	for levels, ok := range map[int]bool{limits.JSONDepth - 5: true, limits.JSONDepth - 4: false} {
		deep := []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
		for name, m := range map[string]proto.Message{
			"object":  &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: deep}},
			"unknown": &hooksv1alpha1.DiscoveryRequest{UnknownMembers: map[string]*hooksv1alpha1.JSON{"new": {Raw: deep}}},
		} {
			if err := c.Check(m); (err == nil) != ok {
				t.Errorf("%s of %d levels: got %v, want it accepted: %t", name, levels, err, ok)
			}
		}
	}
	// What Check accepts at the innermost place can be decoded again.
	deep := []byte(strings.Repeat("[", limits.JSONDepth-5) + strings.Repeat("]", limits.JSONDepth-5))
	m := &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{
		{Variables: []*hooksv1alpha1.Variable{{Value: &hooksv1alpha1.JSON{Raw: deep}}}},
	}}
	text, err := c.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Decode(text, &hooksv1alpha1.GeneratePatchesRequest{}); err != nil {
		t.Error(err)
	}
}

// TestNestingKeepsTrackOfEveryLevel closes each level of a mixed nesting with the wrong bracket.
func TestNestingKeepsTrackOfEveryLevel(t *testing.T) {
	c := New(catalog.New())
	const levels = 200 // over several words of the scanner's stack
	var open []byte
	var closers []byte
	for i := range levels {
		if i%3 == 0 || i%7 == 0 {
			open, closers = append(open, '['), append(closers, ']')
		} else {
			open, closers = append(open, `{"a":`...), append(closers, '}')
		}
	}
	for wrong := range levels + 1 {
		text := append([]byte(`{"cluster":`), open...)
		text = append(text, '1')
		for i := range levels {
			closer := closers[levels-1-i]
			if i == wrong {
				closer ^= '}' ^ ']'
			}
			text = append(text, closer)
		}
		text = append(text, '}')
		err := c.Decode(text, &hooksv1alpha1.BeforeClusterCreateRequest{})
		if wrong == levels && err != nil {
			t.Errorf("the right brackets: %v", err)
		}
		if wrong < levels && err == nil {
			t.Errorf("the wrong bracket at level %d was accepted", levels-wrong)
		}
	}
}

func TestNumbers(t *testing.T) {
	tests := map[string]struct {
		text string
		want int32
		ok   bool
	}{
		"Largest":       {"2147483647", 2147483647, true},
		"OneMore":       {"2147483648", 0, false},
		"Smallest":      {"-2147483648", -2147483648, true},
		"OneLess":       {"-2147483649", 0, false},
		"Int64":         {"9223372036854775807", 0, false},
		"BeyondInt64":   {"9223372036854775808", 0, false},
		"LowWordIsZero": {"4294967296", 0, false},
		"LowWordIsOne":  {"4294967297", 0, false},
		"Zero":          {"0", 0, true},
		"MinusZero":     {"-0", 0, true},
		"WholeFraction": {"1.0", 0, false},
		"Fraction":      {"1.5", 0, false},
		"Exponent":      {"1e1", 0, false},
		"ExponentZero":  {"1E0", 0, false},
		"Null":          {"null", 0, true},
		"True":          {"true", 0, false},
		"Text":          {`"1"`, 0, false},
	}
	c := New(catalog.New())
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			plain := &hooksv1alpha1.UpdateMachineResponse{}
			err := c.Decode([]byte(`{"retryAfterSeconds":`+tc.text+`}`), plain)
			if (err == nil) != tc.ok || err == nil && plain.RetryAfterSeconds != tc.want {
				t.Errorf("retryAfterSeconds: got %d, %v, want %d, %t", plain.RetryAfterSeconds, err, tc.want, tc.ok)
			}
			optional := &hooksv1alpha1.DiscoveryResponse{}
			err = c.Decode([]byte(`{"handlers":[{"timeoutSeconds":`+tc.text+`}]}`), optional)
			if (err == nil) != tc.ok {
				t.Fatalf("timeoutSeconds: got %v, want it accepted: %t", err, tc.ok)
			}
			if err != nil {
				return
			}
			set := optional.Handlers[0].TimeoutSeconds
			if (set != nil) != (tc.text != "null") || set != nil && *set != tc.want {
				t.Errorf("timeoutSeconds: got %v, want %d, and nil for null", set, tc.want)
			}
		})
	}
}

// TestEveryItemIsItsOwn decodes lists of lengths around those at which memory for more messages is allocated.
func TestEveryItemIsItsOwn(t *testing.T) {
	c := New(catalog.New())
	for _, n := range []int{1, 2, 3, 4, 5, 63, 64, 65, 126, 127, 128, 129, 191, 192} {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(`{"uid":"u%d","object":{"n":%d},"variables":[{"name":"v%d","value":%d}]}`, i, i,
				i, i)
		}
		m := &hooksv1alpha1.GeneratePatchesRequest{}
		if err := c.Decode([]byte(`{"items":[`+strings.Join(items, ",")+`]}`), m); err != nil {
			t.Fatal(err)
		}
		if len(m.Items) != n {
			t.Fatalf("%d items, want %d", len(m.Items), n)
		}
		for i, item := range m.Items {
			number := strconv.Itoa(i)
			if item.Uid != "u"+number || string(item.Object.Raw) != `{"n":`+number+`}` || len(item.Variables) != 1 ||
				item.Variables[0].Name != "v"+number || string(item.Variables[0].Value.Raw) != number {
				t.Fatalf("item %d of %d is %v", i, n, item)
			}
		}
	}
}

// TestSmallObjectsAreCopied encodes an object of exactly the size up to which a copy is cheaper than a segment.
func TestSmallObjectsAreCopied(t *testing.T) {
	c := New(catalog.New())
	for size, segments := range map[int]int{smallRaw: 1, smallRaw + 1: 3} {
		raw := []byte(`"` + strings.Repeat("x", size-2) + `"`)
		body, err := c.Encode(&hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: raw}})
		if err != nil {
			t.Fatal(err)
		}
		if len(body.segments) != segments || !bytes.Contains(body.Bytes(), raw) {
			t.Errorf("an object of %d bytes: %d segments, want %d", size, len(body.segments), segments)
		}
	}
}

// TestManySegments encodes so much envelope between large objects that several chunks are needed.
func TestManySegments(t *testing.T) {
	c := New(catalog.New())
	m := &hooksv1alpha1.GeneratePatchesRequest{}
	for i := range 300 {
		m.Items = append(m.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			Uid:    strings.Repeat(strconv.Itoa(i%10), i),
			Object: &hooksv1alpha1.RawExtension{Raw: []byte(`"` + strings.Repeat("y", smallRaw) + `"`)},
		})
	}
	body, err := c.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if got := body.Bytes(); !bytes.Equal(got, want) || body.Size() != int64(len(want)) {
		t.Errorf("Encode wrote %d bytes and says %d, Append wrote %d others", len(got), body.Size(), len(want))
	}
}

func TestExcerpt(t *testing.T) {
	c := New(catalog.New())
	exactly, beyond := strings.Repeat("k", 64), strings.Repeat("k", 65)
	for kind, want := range map[string]string{
		exactly: exactly,
		beyond:  `"` + exactly + `"…`,
		"a b":   `"a b"`,
		"a~":    "a~",
		"a\x7f": `"a\x7f"`,
		"é":     `"é"`,
	} {
		err := c.Decode([]byte(`{"kind":`+strconv.Quote(kind)+`}`), &hooksv1alpha1.DiscoveryRequest{})
		if kind == "a\x7f" {
			err = c.Decode([]byte("{\"kind\":\"a\x7f\"}"), &hooksv1alpha1.DiscoveryRequest{})
		}
		if want = "kind: want DiscoveryRequest, got " + want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
