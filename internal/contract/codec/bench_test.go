// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// template is a Kubernetes object of about size bytes, with the mix of short names, values and longer texts that
// templates have.
func template(n, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"DockerMachineTemplate","metadata":{"name":"quick-start-%d",`+
		`"namespace":"default","uid":"6d7ab4a6-63ff-4b5e-a7f4-cf5e5b0f%04x","generation":9007199254740993,"labels":{"topology.cluster.x-k8s.io/owned":""}},`+
		`"spec":{"template":{"spec":{"extraMounts":[{"containerPath":"/var/run/docker.sock","hostPath":"/var/run/docker.sock"}],"files":[`, n, n)
	for i := 0; b.Len() < size-180; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"path":"/etc/kubernetes/admission/%d.yaml","owner":"root:root","permissions":"0640","append":false,"mode":%d,`+
			`"content":"apiVersion: v1\nkind: List\nitems: \"%d\"\n"}`, i, 100+i, i)
	}
	b.WriteString(`]}}}}`)
	return b.String()
}

// requestS is a BeforeClusterCreate request of 4 KB.
func requestS() []byte {
	return []byte(`{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","settings":{"mode":"strict"},"cluster":` +
		template(0, 3900) + `}`)
}

// requestItems is a GeneratePatches request of about 2.5 KB for each item.
func requestItems(items int) []byte {
	var b strings.Builder
	b.WriteString(`{"kind":"GeneratePatchesRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","settings":{"mode":"strict"},` +
		`"variables":[{"name":"imageRepository","value":"registry.k8s.io"}],"items":[`)
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"uid":"6d7ab4a6-63ff-4b5e-a7f4-cf5e5b0f%04x","holderReference":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineDeployment",`+
			`"namespace":"default","name":"md-%d","fieldPath":"spec.template.spec.infrastructureRef"},"object":%s,`+
			`"variables":[{"name":"builtin","value":{"machineDeployment":{"replicas":%d,"version":"v1.34.2"}}}]}`, i, i, template(i, 2060), i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

type size struct {
	name string
	body []byte
	msg  func() proto.Message
}

func sizes() []size {
	patches := func() proto.Message { return &hooksv1alpha1.GeneratePatchesRequest{} }
	return []size{
		{"S", requestS(), func() proto.Message { return &hooksv1alpha1.BeforeClusterCreateRequest{} }},
		{"M", requestItems(100), patches},
		{"L", requestItems(2000), patches},
	}
}

// benchmarkBodies measures what decode does with each body and a new message for it.
func benchmarkBodies(b *testing.B, decode func(body []byte, m proto.Message) error) {
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(s.body, s.msg()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) { benchmarkBodies(b, New(catalog.New()).Decode) }

// BenchmarkPartial is what a body costs that is only sent on.
func BenchmarkPartial(b *testing.B) {
	c := New(catalog.New())
	benchmarkBodies(b, func(body []byte, m proto.Message) error {
		_, err := c.DecodePartial(body, m, Guard{})
		return err
	})
}

// BenchmarkElements is what a body costs that is sent on as protobuf: BenchmarkPartial, and writing the elements.
func BenchmarkElements(b *testing.B) {
	c := New(catalog.New())
	benchmarkBodies(b, func(body []byte, m proto.Message) error {
		found, err := c.DecodeElements(body, m, Guard{})
		if err == nil && found.Elements != nil {
			_, err = found.Elements.WriteTo(io.Discard)
		}
		return err
	})
}

// BenchmarkValid is the baseline of the other benchmarks.
func BenchmarkValid(b *testing.B) {
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.body)))
			for b.Loop() {
				if !json.Valid(s.body) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

// BenchmarkScan is the part of Decode that looks at every byte.
func BenchmarkScan(b *testing.B) {
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.body)))
			for b.Loop() {
				if err := (&checker{}).raw(s.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func decoded(b *testing.B, c *Codec, s size) proto.Message {
	b.Helper()
	m := s.msg()
	if err := c.Decode(s.body, m); err != nil {
		b.Fatal(err)
	}
	return m
}

func BenchmarkEncode(b *testing.B) {
	c := New(catalog.New())
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			m := decoded(b, c, s)
			b.SetBytes(int64(len(s.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Encode(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	c := New(catalog.New())
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			m := decoded(b, c, s)
			b.SetBytes(int64(len(s.body)))
			b.ReportAllocs()
			buf := make([]byte, 0, len(s.body))
			for b.Loop() {
				if _, err := c.Append(buf, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMarshal(b *testing.B) {
	c := New(catalog.New())
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			m := decoded(b, c, s)
			b.SetBytes(int64(len(s.body)))
			b.ReportAllocs()
			for b.Loop() {
				body, err := c.Encode(m)
				if err != nil {
					b.Fatal(err)
				}
				_ = body.Bytes()
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	c := New(catalog.New())
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			m := decoded(b, c, s)
			b.SetBytes(int64(len(s.body)))
			for b.Loop() {
				if err := c.Check(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBodyRead(b *testing.B) {
	c := New(catalog.New())
	for _, s := range sizes() {
		b.Run(s.name, func(b *testing.B) {
			body, err := c.Encode(decoded(b, c, s))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(body.Size())
			buf := make([]byte, 32<<10)
			for b.Loop() {
				r := body.Reader()
				for {
					if _, err := r.Read(buf); err != nil {
						break
					}
				}
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	cluster := []byte(template(0, 3900))
	for b.Loop() {
		if value, _ := jsonscan.Lookup(cluster, "metadata", "namespace"); value == nil {
			b.Fatal("not found")
		}
	}
}
