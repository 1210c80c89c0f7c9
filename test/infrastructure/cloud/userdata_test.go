// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/ignition"
)

// compress returns text as gzip has it.
func compress(t *testing.T, text string) string {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// TestIgnition reads what Cluster API writes for Ignition.
func TestIgnition(t *testing.T) {
	data, _, err := ignition.NewNode(&ignition.NodeInput{NodeInput: &cloudinit.NodeInput{
		BaseUserData: cloudinit.BaseUserData{AdditionalFiles: []bootstrapv1.File{
			{Path: "/etc/plain", Content: "a b%20\n", Permissions: "0644"},
		}},
		JoinConfiguration: "kind: JoinConfiguration\n",
	}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseUserData(formatIgnition, data, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if read.command != "join" || !strings.Contains(string(read.config), "kind: JoinConfiguration") {
		t.Errorf("kubeadm %s: %q", read.command, read.config)
	}
	if got := string(read.files["/etc/plain"]); !strings.HasPrefix(got, "a b%20\n") {
		t.Errorf("file: %q", got)
	}
	for name, row := range map[string]struct{ data, want string }{
		"json":   {"{", "ignition: unexpected end"},
		"remote": {`{"storage":{"files":[{"path":"/x","contents":{"source":"https://x"}}]}}`, "only data URLs are read"},
		"comma":  {`{"storage":{"files":[{"path":"/x","contents":{"source":"data:"}}]}}`, "a data URL needs a comma"},
		"base64": {`{"storage":{"files":[{"path":"/x","contents":{"source":"data:;base64,%"}}]}}`, "illegal base64"},
	} {
		if _, err := parseUserData(formatIgnition, []byte(row.data), nil); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// TestEncodings reads files of cloud-init in each encoding, and refuses one that grows beyond the limit.
func TestEncodings(t *testing.T) {
	for _, row := range []struct{ encoding, content string }{
		{"", "text"},
		{"b64", encode("text")},
		{"base64", encode("text") + "\n"},
		{"gzip+base64", encode(compress(t, "text"))},
		{"gz+b64", encode(compress(t, "text"))},
	} {
		if got, err := decodeContent(row.encoding, row.content); string(got) != "text" || err != nil {
			t.Errorf("%s: %q, %v", row.encoding, got, err)
		}
	}
	for _, row := range []struct{ encoding, content, want string }{
		{"rot13", "grkg", `encoding "rot13" is not known`},
		{"b64", "%", "illegal base64"},
		{"gz+b64", encode("this is not compressed"), "gzip: invalid header"},
		{"gz+b64", encode(compress(t, strings.Repeat("x", maxBody+1))), "more than 2097152 bytes"},
	} {
		if _, err := decodeContent(row.encoding, row.content); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.encoding, err, row.want)
		}
	}
	if got, err := decodeContent("gz+b64", encode(compress(t, strings.Repeat("x", maxBody)))); err != nil || len(got) != maxBody {
		t.Errorf("at the limit: %d, %v", len(got), err)
	}
}

// TestTemplates renders metadata, and only where the document asks for it.
func TestTemplates(t *testing.T) {
	metadata := map[string]string{"instance_id": "i-1", "local_hostname": "h"}
	text := "## template: jinja\n{{ ds.meta_data.instance_id }} {{v1.local_hostname}} {{- instance_id -}}"
	if got, err := render([]byte(text), metadata); string(got) != "## template: jinja\ni-1 h i-1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, expression := range []string{"{{ x }}", "{{ ds.meta_data.instance_id | upper }}"} {
		if _, err := render([]byte(expression), metadata); err == nil {
			t.Errorf("%s: no error", expression)
		}
	}
	plain := "#cloud-config\nwrite_files: [{path: /c, content: '{{ x }}'}]\nruncmd: [[kubeadm, join, --config, /c]]"
	read, err := parseUserData("", []byte(plain), metadata)
	if err != nil || string(read.config) != "{{ x }}" {
		t.Errorf("%+v, %v", read, err)
	}
}

// TestAuthorities refuses authorities that the API servers could not use.
func TestAuthorities(t *testing.T) {
	w := &fixture{T: t, certificates: generated()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		change func(map[string][]byte)
		want   string
	}{
		"ecdsa": {func(files map[string][]byte) {
			files[clusterAuthority+".key"] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
		}, "only RSA keys work here"},
		"another": {func(files map[string][]byte) {
			files[clusterAuthority+".key"] = files[etcdAuthority+".key"]
		}, "is not the key of"},
		"certificate": {func(files map[string][]byte) { files[clusterAuthority+".crt"] = []byte("x") }, "ca.crt: "},
		"key":         {func(files map[string][]byte) { files[clusterAuthority+".key"] = []byte("x") }, "ca.key: "},
		"missing":     {func(files map[string][]byte) { delete(files, clusterAuthority+".crt") }, "is not among the files"},
	} {
		files := w.files()
		row.change(files)
		if _, err := readAuthority(files, clusterAuthority); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	ours, err := readAuthority(w.files(), clusterAuthority)
	if err != nil {
		t.Fatal(err)
	}
	if err := ours.sameAuthority(w.files(), clusterAuthority); err != nil {
		t.Error(err)
	}
	if err := ours.sameAuthority(w.files(), etcdAuthority); err == nil {
		t.Error("another authority is the same")
	}
}

// TestDocuments reads at most so many documents of kubeadm's configuration.
func TestDocuments(t *testing.T) {
	if _, err := kubeadmDocuments([]byte(strings.Repeat("kind: A\n---\n", maxDocuments-1) + "kind: B\n")); err != nil {
		t.Error(err)
	}
	if _, err := kubeadmDocuments([]byte(strings.Repeat("kind: A\n---\n", maxDocuments) + "kind: B\n")); err == nil {
		t.Error("one document more: no error")
	}
	if _, err := kubeadmDocuments([]byte("a: b: c\n")); err == nil {
		t.Error("not YAML: no error")
	}
}
