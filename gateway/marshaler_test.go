// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

func TestMarshalerDecodesWhatTheFrontHasRead(t *testing.T) {
	const head = `{"kind":"BeforeClusterCreateRequest",`
	const cluster = `"cluster":{"a":1}}`
	tests := map[string]struct {
		reason   string
		body     io.Reader
		complete bool
		want     string // the error
	}{
		"Complete":     {"it can be sent on as it is", restBody{&incoming{body: []byte(head + `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",` + cluster)}}, true, ""},
		"NoAPIVersion": {"extensions want it", restBody{&incoming{body: []byte(head + cluster)}}, false, ""},
		"Neither":      {"extensions want both", restBody{&incoming{body: []byte("{" + cluster)}}, false, ""},
		"Empty":        {"an empty body is not an empty message", restBody{&incoming{}}, false, "body is empty, want a JSON object"},
		"NotJSON":      {"", restBody{&incoming{body: []byte("x")}}, false, "invalid JSON at byte 0: unexpected 'x', want a value"},
		"NotRead":      {"nothing else is read", strings.NewReader("{}"), false, "*strings.Reader is not a body that the front has read"},
		"None":         {"nothing else is read", nil, false, "<nil> is not a body that the front has read"},
	}
	m := marshaler{mandated}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := &hooksv1alpha1.BeforeClusterCreateRequest{}
			err := m.NewDecoder(tc.body).Decode(got)
			if tc.want != "" {
				if err == nil || err.Error() != tc.want || errors.Is(err, io.EOF) {
					t.Errorf("%s: got error %v, want %s", tc.reason, err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			in := tc.body.(restBody).incoming
			if in.complete != tc.complete {
				t.Errorf("%s: complete is %t", tc.reason, in.complete)
			}
			if r := in.request(got); (r.Body != nil) != tc.complete {
				t.Errorf("%s: the body of the request is %q", tc.reason, r.Body)
			}
			in.body[len(in.body)-3] = '2'
			if string(got.Cluster.GetRaw()) != `{"a":2}` {
				t.Errorf("the body was copied: got %s", got.Cluster.GetRaw())
			}
		})
	}
}

func TestMarshalerEncodes(t *testing.T) {
	m := marshaler{mandated}
	if got := m.ContentType(nil); got != "application/json" {
		t.Errorf("content type is %s", got)
	}
	const body = `{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","cluster":{"a":1}}`
	msg := &hooksv1alpha1.BeforeClusterCreateRequest{}
	if err := m.Unmarshal([]byte(body), msg); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Marshal(msg); err != nil || string(got) != body {
		t.Errorf("Marshal: %v\ngot  %s\nwant %s", err, got, body)
	}
	var out bytes.Buffer
	if err := m.NewEncoder(&out).Encode(msg); err != nil || out.String() != body {
		t.Errorf("Encode: %v\ngot  %s\nwant %s", err, out.Bytes(), body)
	}
	r, w := io.Pipe()
	_ = r.CloseWithError(io.ErrShortWrite)
	if err := m.NewEncoder(w).Encode(msg); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Encode to a writer that fails: %v", err)
	}
}

func TestMarshalerRefusesWhatIsNoMessage(t *testing.T) {
	m := marshaler{mandated}
	const want = "map[string]string is not a message"
	v := map[string]string{}
	if _, err := m.Marshal(v); err == nil || err.Error() != want {
		t.Errorf("Marshal: %v", err)
	}
	if err := m.Unmarshal([]byte("{}"), v); err == nil || err.Error() != want {
		t.Errorf("Unmarshal: %v", err)
	}
	if err := m.NewEncoder(io.Discard).Encode(v); err == nil || err.Error() != want {
		t.Errorf("Encode: %v", err)
	}
	if _, err := m.Marshal(&hooksv1alpha1.DiscoveryResponse{Status: 9}); err == nil || err.Error() != "status: has no value 9" {
		t.Errorf("Marshal of what has no JSON: %v", err)
	}
}
