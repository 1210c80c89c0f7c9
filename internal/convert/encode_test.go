// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// Writing agrees with encoding/json for whole objects of all kinds, with and without each of their members.
func TestWritesAsEncodingJSON(t *testing.T) {
	const objects = 100
	for _, k := range kinds() {
		for _, s := range []*side{k.old, k.hub} {
			t.Run(k.name+" of "+s.name, func(t *testing.T) {
				for seed := range int64(objects) {
					v := newValue(s.schema)
					filler(seed).Fill(v.pointer(s.schema))
					want, err := json.Marshal(v.pointer(s.schema))
					if err != nil {
						t.Fatal(err)
					}
					got, err := appendJSON(nil, s.schema, v)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(string(want), string(got)); diff != "" {
						t.Fatalf("seed %d (-encoding/json +convert):\n%s", seed, diff)
					}
				}
			})
		}
	}
}

// filler returns what fills objects with values that are hard to write.
func filler(seed int64) *randfill.Filler {
	texts := []string{"", "a", "a b", `"\`, "<a&b>", "\u2028\u2029", "é\U0001f600", "\xff", "\x00\x1f\x7f\n"}
	raws := []string{
		"", "null", "1", `"a"`, `{"a":[1,2]}`, "{ \"a\" :\t[ ] }", `"<a&b>"`, "\"\u2028\"", "\"â\"", `"\u003c"`, "1e400",
	}
	times := []time.Time{
		{}, time.Unix(0, 0), time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(s *string, c randfill.Continue) { *s = texts[c.Intn(len(texts))] },
		func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = []byte(raws[c.Intn(len(raws))]) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:a":{}}`) },
		func(v *metav1.Time, c randfill.Continue) { v.Time = times[c.Intn(len(times))] },
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Int63()) >> c.Intn(64) },
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31()); c.Bool() {
				*v = intstr.FromString(texts[c.Intn(len(texts))])
			}
		},
	)
}

// Every type whose members are left out by omitzero or omitempty decides that as in encoding/json.
func TestOmitsAsEncodingJSON(t *testing.T) {
	type inner struct {
		A string            `json:"a"`
		M map[string]string `json:"m,omitempty"`
	}
	type outer struct {
		Object  inner             `json:"object,omitzero"`
		Empty   inner             `json:"empty,omitempty"` //nolint:modernize // to see that it is written
		Pointer *inner            `json:"pointer,omitzero"`
		Time    metav1.Time       `json:"time,omitzero"`
		ToTime  *metav1.Time      `json:"toTime,omitzero"`
		List    []string          `json:"list,omitzero"`
		Short   []string          `json:"short,omitempty"`
		Map     map[string]string `json:"map,omitzero"`
		Few     map[string]string `json:"few,omitempty"`
		Number  int32             `json:"number,omitzero"`
		Flag    bool              `json:"flag,omitempty"`
	}
	long := "long"
	for name, v := range map[string]outer{
		"zero":  {},
		"empty": {Object: inner{M: map[string]string{}}, Pointer: &inner{}, List: []string{}, Short: []string{}, Map: map[string]string{}, Few: map[string]string{}},
		// A string of length zero that points somewhere is not all zero bytes.
		"cut":        {Object: inner{A: long[:0]}, List: []string{long[:0]}, Short: []string{long[:0]}},
		"zero times": {ToTime: &metav1.Time{}, Time: metav1.Time{Time: time.Time{}.In(time.FixedZone("", 1))}},
		"set": {
			Object: inner{A: "a"}, Pointer: &inner{A: "b"}, Time: metav1.Unix(1, 0), ToTime: new(metav1.Unix(2, 0)),
			Number: -1, Flag: true, Map: map[string]string{"b": "1", "a": "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(&v)
			if err != nil {
				t.Fatal(err)
			}
			got, err := appendJSON(nil, schemaOf(reflect.TypeFor[outer]()), valueOf(&v))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// FuzzCompact compares raw JSON with what encoding/json writes of it.
func FuzzCompact(f *testing.F) {
	for _, seed := range []string{
		"{ \"a\" : [ 1 ,\t\"<&>\" , \"\\\"\u2028 \\\\\" ] }\r\n", `" \u003c  \\"`, "\"\u2027\u2029\u202a\xe2\x80\"", "[\"\xe2\",\"\xe2\x80\xa8\"]", "1 ",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		raw := apiextensionsv1.JSON{Raw: text}
		want, err := json.Marshal(raw)
		if err != nil {
			return // it is not valid
		}
		got, err := appendRaw([]byte("before"), raw)
		if err != nil || string(got) != "before"+string(want) {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	})
}
