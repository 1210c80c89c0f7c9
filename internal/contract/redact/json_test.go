// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/samples"
)

const testToken = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func redact(t *testing.T, text string, group string, pointers ...string) (string, int) {
	t.Helper()
	r, err := NewRedactor(pointers)
	if err != nil {
		t.Fatal(err)
	}
	out, n, err := r.Append([]byte("before "), []byte(text), hook.GroupHook{Group: group})
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(out, []byte("before "))
	if !ok {
		t.Fatalf("the text before is lost: %s", out)
	}
	return string(rest), n
}

func TestRedact(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		text, want string
		pointers   []string
		group      string
	}{
		"nothing": {
			reason: "what has no secret stays as it is written, but for white space",
			text:   " { \"n\" : 9007199254740993.10, \"s\":\"a \\u0041 <b>\",\n\"l\":[ ],\"o\":{ } , \"t\":[true, null] } ",
			want:   `{"n":9007199254740993.10,"s":"a \u0041 <b>","l":[],"o":{},"t":[true,null]}`,
		},
		"names": {
			reason: "a member, a variable and an environment variable with the name of a secret",
			text: `{"adminPassword":"x","api_key":"y","token":"","password":{"a":"b"},"automountServiceAccountToken":false,` +
				`"variables":[{"name":"registryPassword","value":{"a":["q",1]}},{"value":"z","name":"API-KEY"},{"name":"image","value":"v"}]}`,
			want: `{"adminPassword":"***","api_key":"***","token":"","password":{"a":"b"},"automountServiceAccountToken":false,` +
				`"variables":[{"name":"registryPassword","value":{"a":["***",1]}},{"value":"***","name":"API-KEY"},{"name":"image","value":"v"}]}`,
		},
		"references": {
			reason: "the name of a Secret is none",
			text:   `{"secretName":"s","dataSecretName":"d","tokenSecretRef":{"name":"n","key":"k"}}`,
			want:   `{"secretName":"s","dataSecretName":"d","tokenSecretRef":{"name":"n","key":"k"}}`,
		},
		"escaped names": {
			reason: "a name may be written in another way",
			text:   `{"\u0070assword":"x","kin\u0064":"Secret","data":{"a":"eA=="}}`,
			want:   `{"\u0070assword":"***","kin\u0064":"Secret","data":{"a":"Kioq"}}`,
		},
		"Secret": {
			reason: "the data of a Secret, before its kind and behind it, and what kubectl writes about it",
			text: `{"items":[{"data":{"a":"c2VjcmV0"},"kind":"Secret","stringData":{"b":"plain"},"metadata":{"name":"n","annotations":` +
				`{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"a\":\"c2VjcmV0\"}}","other":"o"}}},` +
				`{"kind":"ConfigMap","data":{"a":"plain"}}]}`,
			want: `{"items":[{"data":{"a":"Kioq"},"kind":"Secret","stringData":{"b":"***"},"metadata":{"name":"n","annotations":` +
				`{"kubectl.kubernetes.io/last-applied-configuration":"***","other":"o"}}},` +
				`{"kind":"ConfigMap","data":{"a":"plain"}}]}`,
		},
		"shapes": {
			reason: "private keys, tokens, and what stands behind a name in a text",
			text: `{"a":"` + testToken + `","b":"Bearer abcdefgh12345","c":"postgres://u:p@db/x","d":"kubeadm join --token abcdef.0123456789abcdef",` +
				`"e":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n","f":"abcdef.0123456789abcdef","g":"registry.k8s.io/pause:3.10"}`,
			want: `{"a":"***","b":"Bearer ***","c":"postgres://***@db/x","d":"kubeadm join --token ***",` +
				`"e":"***\n","f":"***","g":"registry.k8s.io/pause:3.10"}`,
		},
		"within": {
			reason: "JSON in a string, and base64 as in the files of KubeadmConfigs",
			text:   `{"a":"{\"password\":\"x\"}","content":"` + base64Of("login: "+testToken) + `"}`,
			want:   `{"a":"{\"password\":\"***\"}","content":"` + base64Of("login: ***") + `"}`,
		},
		"pointers": {
			reason:   "all values below a pointer, which keep their types",
			pointers: []string{"/items/*/object/spec/pin", "/a~1b", "/deep/**/x", "/all/**"},
			text: `{"items":[{"object":{"spec":{"pin":{"n":7,"b":true,"s":"s","z":null,"l":["x"]},"other":{"pin":1}}}}],"a/b":"s",` +
				`"deep":{"x":"1","y":[{"x":"2","v":"3"}]},"all":{"a":"b"},"pin":"p"}`,
			want: `{"items":[{"object":{"spec":{"pin":{"n":0,"b":false,"s":"***","z":null,"l":["***"]},"other":{"pin":1}}}}],"a/b":"***",` +
				`"deep":{"x":"***","y":[{"x":"***","v":"3"}]},"all":{"a":"***"},"pin":"p"}`,
		},
		"JSON patch": {
			reason:   "the values of operations whose path is a secret's, or the end of a pointer, or above it",
			pointers: []string{"/items/*/object/spec/pin"},
			text: `{"items":[{"patchType":"JSONPatch","patch":"` + base64Of(`[{"op":"add","path":"/spec/adminPassword","value":"a"},`+
				`{"value":"b","op":"add","path":"/spec/pin"},{"op":"add","path":"/spec","value":{"pin":"c","other":"d"}},{"op":"add","path":"/other/pin","value":"e"}]`) + `"}]}`,
			want: `{"items":[{"patchType":"JSONPatch","patch":"` + base64Of(`[{"op":"add","path":"/spec/adminPassword","value":"***"},`+
				`{"value":"***","op":"add","path":"/spec/pin"},{"op":"add","path":"/spec","value":{"pin":"***","other":"d"}},{"op":"add","path":"/other/pin","value":"e"}]`) + `"}]}`,
		},
		"merge patch": {
			reason:   "a merge patch has the form of the object",
			pointers: []string{"/items/*/object/spec/pin"},
			text:     `{"patchType":"JSONMergePatch","patch":"` + base64Of(`{"spec":{"pin":"c","token":"d","other":"e"}}`) + `"}`,
			want:     `{"patchType":"JSONMergePatch","patch":"` + base64Of(`{"spec":{"pin":"***","token":"***","other":"e"}}`) + `"}`,
		},
		"infrastructure": {
			reason: "requests of infrastructure have credentials and bootstrap data",
			group:  hook.InfrastructureGroup,
			text:   `{"header":{"credentials":{"user":"u"}},"bootstrap":{"data":"#cloud-config","format":"cloud-config"}}`,
			want:   `{"header":{"credentials":{"user":"***"}},"bootstrap":{"data":"***","format":"cloud-config"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, n := redact(t, tc.text, tc.group, tc.pointers...)
			if got != tc.want {
				t.Errorf("%s:\n got %s\nwant %s", tc.reason, got, tc.want)
			}
			if (n > 0) != (got != compact(t, tc.text)) {
				t.Errorf("%d values were removed of %s", n, tc.text)
			}
		})
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A text whose secrets are within one another is read again for each of them, which must end.
func TestRedactIsBounded(t *testing.T) {
	const depth = 900
	text := strings.Repeat(`{"name":"token","value":`, depth) + `"x"` + strings.Repeat("}", depth)
	r, err := NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = r.Append(nil, []byte(text), hook.GroupHook{}); !errors.Is(err, errTooMuchWork) {
		t.Errorf("got %v", err)
	}
	shallow := strings.Repeat(`{"name":"token","value":`, 3) + `"x"` + strings.Repeat("}", 3)
	const want = `{"name":"token","value":{"name":"***","value":{"name":"***","value":"***"}}}`
	if got, _ := redact(t, shallow, ""); got != want {
		t.Errorf("got %s", got)
	}
}

func TestPointersThatAreNone(t *testing.T) {
	_, err := NewRedactor([]string{"items", "", "/a", "/" + strings.Repeat("a", 2000)})
	const want = "\"items\": want a JSON pointer, such as /items/*/object/spec/password\n" +
		"\"\": want a JSON pointer, such as /items/*/object/spec/password\n" +
		"a JSON pointer has more than 1024 bytes"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := NewRedactor(make([]string, 101)); err == nil {
		t.Error("101 pointers were accepted")
	}
}

func TestRedactRefusesWhatIsNoJSON(t *testing.T) {
	r, _ := NewRedactor(nil)
	for _, text := range []string{"", "{", `{"a":1} x`, `{"a"}`, strings.Repeat("[", 1<<20)} {
		if out, _, err := r.Append(nil, []byte(text), hook.GroupHook{}); err == nil {
			t.Errorf("%.20q became %.20s", text, out)
		}
	}
}

// Whatever a text has, it stays JSON, of the same types and names.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Secret","data":{"a":"x"},"metadata":{"annotations":{}}}`, `[{"op":"add","path":"/a/token","value":{"x":[1]}}]`,
		`{"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6ImIifV0="}`, `{"name":"token","value":"{\"password\":\"a\"}"}`, `"\ud800"`,
	} {
		f.Add(seed)
	}
	r, err := NewRedactor([]string{"/a/**/b", "/*/c"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, n, err := r.Append(nil, []byte(text), hook.GroupHook{})
		if err != nil {
			return
		}
		if !json.Valid(out) || bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("%q became %q", text, out)
		}
		if n == 0 && string(out) != compact(t, text) {
			t.Fatalf("%q became %q, and nothing was removed", text, out)
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	for name, text := range map[string][]byte{"S": samples.S(), "M": samples.M()} {
		b.Run(name, func(b *testing.B) {
			r, err := NewRedactor(nil)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				if out, _, err = r.Append(out[:0], text, hook.GroupHook{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
