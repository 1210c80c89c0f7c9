// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"errors"
	"io"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

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
