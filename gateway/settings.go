// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
)

// withSettings returns req with the settings of an ExtensionConfig added; settings in the request take precedence. It
// does not change req: if there are settings to add, the result is a new message that shares everything else with it.
func withSettings(req proto.Message, settings map[string]string) proto.Message {
	r, ok := req.(interface{ GetSettings() map[string]string })
	if !ok || len(settings) == 0 {
		return req
	}
	merged := make(map[string]string, len(settings)+len(r.GetSettings()))
	maps.Copy(merged, settings)
	maps.Copy(merged, r.GetSettings())

	to := catalog.Shallow(req.ProtoReflect())
	field := to.Descriptor().Fields().ByName("settings")
	to.Clear(field) // the map is the request's
	m := to.Mutable(field).Map()
	for k, v := range merged {
		m.Set(protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString(v))
	}
	return to.Interface()
}
