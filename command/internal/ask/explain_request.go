// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"encoding/json"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

// clusterObject is what a request says of a Cluster.
type clusterObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
}

// readExplained reads from a file a request of the hook, or a Cluster, for which it makes one. It writes misspelt
// members to warnings.
func readExplained(
	in io.Reader, path string, h *catalog.Hook, c *codec.Codec, warnings io.Writer,
) (request proto.Message, ofCluster bool, err error) {
	body, err := target.ReadJSON(in, path)
	if err != nil {
		return nil, false, err
	}
	var o clusterObject
	if err := json.Unmarshal(body, &o); err != nil || o.Kind != "Cluster" ||
		!strings.HasPrefix(o.APIVersion, "cluster.x-k8s.io/") {
		request, err := target.DecodeRequest(body, path, h, c, warnings)
		return request, false, err
	}
	if request = requestAbout(&o, body, h); request == nil {
		return nil, false, cmdline.Usagef("-f %s: a Cluster is not enough for a request of %s: give the request",
			target.InputName(path), h.Hook)
	}
	return request, true, nil
}

// requestAbout returns a request of the hook about a Cluster, with what selectors read, or nil if the hook is about
// something else.
func requestAbout(o *clusterObject, body []byte, h *catalog.Hook) proto.Message {
	cluster := &hooksv1alpha1.RawExtension{Raw: body}
	m := h.Request.New()
	switch m.Interface().(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		return &hooksv1alpha1.GeneratePatchesRequest{
			Variables: builtinOf(o),
			Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{
				Uid: "1", HolderReference: holderOf(o), Object: &hooksv1alpha1.RawExtension{Raw: []byte("{}")},
			}},
		}
	case *hooksv1alpha1.ValidateTopologyRequest:
		return &hooksv1alpha1.ValidateTopologyRequest{
			Variables: builtinOf(o),
			Items: []*hooksv1alpha1.ValidateTopologyRequestItem{{
				HolderReference: holderOf(o), Object: &hooksv1alpha1.RawExtension{Raw: []byte("{}")},
			}},
		}
	case interface {
		GetCluster() *hooksv1alpha1.RawExtension
	}:
		m.Set(m.Descriptor().Fields().ByName("cluster"), protoreflect.ValueOfMessage(cluster.ProtoReflect()))
		return m.Interface()
	}
	return nil
}

// builtinOf returns the variable in which Cluster API passes its data about a Cluster.
func builtinOf(o *clusterObject) []*hooksv1alpha1.Variable {
	value, _ := json.Marshal(map[string]any{"cluster": map[string]any{ // strings, which always can be written
		"name": o.Metadata.Name, "namespace": o.Metadata.Namespace,
		"metadata": map[string]any{"labels": o.Metadata.Labels, "annotations": o.Metadata.Annotations},
	}})
	return []*hooksv1alpha1.Variable{{Name: subject.Builtin, Value: &hooksv1alpha1.JSON{Raw: value}}}
}

// holderOf returns the reference to a Cluster that holds a template.
func holderOf(o *clusterObject) *hooksv1alpha1.HolderReference {
	return &hooksv1alpha1.HolderReference{
		ApiVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
		FieldPath: "spec.infrastructureRef",
	}
}
