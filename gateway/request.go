// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/contract/release"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/registry"
)

// Request is a request of a hook, decoded.
type Request struct {
	Hook *catalog.Hook
	// Handler is the registered name or the label of a handler. Empty, or the name of a hook whose answers can be
	// merged, means every handler that matches. If the gateway answers for a single extension, it is that extension's
	// own name of the handler.
	Handler string
	// Message is of type Hook.Request. It is only read. It is nil for a Body of which only Partial is read.
	Message proto.Message
	// Partial is what Codec.DecodePartial makes of Body if there is no Message, and Namespaces are those that it finds.
	// elements are what the partial message lacks, for handlers that are called over gRPC.
	Partial    proto.Message
	Namespaces []string
	elements   *codec.Elements
	// Body is the JSON of Message as the caller sent it. It is nil for gRPC, and if the body lacks kind and apiVersion,
	// so that it cannot be sent on unchanged.
	Body []byte
	// via is the way of the request through other gateways.
	via via.Way
	// trial keeps the answers of handlers; nil for a call whose answer alone counts.
	trial *trial
	// calledAs is the name of a Rollout's handler whose candidate is called to compare its answer, which is not used;
	// empty for every other call.
	calledAs string
	// heard, which may be nil, is called with the answer of each handler, and of each chain. It may be called by several
	// goroutines at the same time.
	heard func(handler string, response proto.Message, err error)
}

// selected returns what decides which handlers r is for.
func (r *Request) selected() selection.Request {
	return selection.Request{
		Hook: r.Hook, Handler: r.Handler, Message: r.Message, Partial: r.Partial, Namespaces: r.Namespaces, Body: r.Body,
	}
}

// request returns the request of which m is the message. A request in JSON is decoded into m, which has nothing but the
// name of the handler so far, and as what wanted says of that name.
func (in *call) request(c *codec.Codec, m proto.Message, wanted func(handler string) reading) (Request, error) {
	r := Request{Hook: in.Hook, Message: m, via: in.via}
	if named, ok := m.(interface{ GetHandler() string }); ok {
		r.Handler = named.GetHandler()
		in.Handler = r.Handler
	}
	if !in.isJSON {
		return r, nil
	}
	found, err := in.decode(c, m, wanted(r.Handler))
	if err != nil {
		return r, err
	}
	if found.Complete {
		r.Body = in.body
	}
	if found.Skipped {
		r.Message, r.Partial, r.Namespaces, r.elements = nil, m, found.Namespaces, found.Elements
	}
	return r, nil
}

// decode decodes the body, a large one as heavy work. Errors are of kind InvalidRequest, and those of beyond.
func (in *call) decode(c *codec.Codec, m proto.Message, as reading) (found codec.Partial, err error) {
	if len(in.body) == 0 {
		return found, hook.Errorf(hook.InvalidRequest, "body is empty, want a JSON object")
	}
	guard := in.guard
	if len(in.body) > budget.Step {
		if err := in.work.Step(); err != nil {
			return found, bounds.Refused(err)
		}
		defer in.work.End()
		guard.Step = in.work.Step
	}
	switch as {
	case passThrough:
		found, err = c.DecodePartial(in.body, m, guard)
	case passThroughToGRPC:
		found, err = c.DecodeElements(in.body, m, guard)
	default:
		found.Complete, err = c.DecodeGuarded(in.body, m, guard)
	}
	if refused := bounds.Refused(err); refused != nil {
		return found, refused
	}
	if err != nil {
		return found, hook.Errorf(hook.InvalidRequest, "%s", err)
	}
	return found, nil
}

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

// reading is how much of a request in JSON is read as a message on its way.
type reading int

const (
	readWhole reading = iota
	// passThrough means that all handlers get the elements that its partial message lacks as the caller wrote them, and
	// nothing else reads them; passThroughToGRPC that some of the handlers get them as protobuf.
	passThrough
	passThroughToGRPC
)

// readingOf returns how much of a request in JSON is read. Whatever reads the elements that its partial message lacks,
// or makes another request of them, is a condition here, or it finds a Call without a Request:
//
//   - selectors and conditions read the newest version of a hook, for which other versions are converted;
//   - a version of the hook, or of Cluster API's objects, that the handler wants and the caller has not sent;
//   - settings of the ExtensionConfig, which are added;
//   - a cache, whose key is made of the message;
//   - a chain, whose steps see what those before them have patched.
//
// Selectors read the partial message, and conditions the JSON.
func readingOf(s *registry.Snapshot, h *catalog.Hook, handler string, objects *convert.Objects) reading {
	if h != h.Hub() {
		return readWhole
	}
	if selection.IsNamed(s, h, handler) {
		e, ok := s.Handler(handler)
		if !ok {
			return readWhole
		}
		return readingForAny(h, e, objects)
	}
	if chains, _ := s.StandsFor(h.GroupHook()); len(chains) > 0 {
		return readWhole
	}
	most := passThrough
	for _, e := range s.Handlers(h.GroupHook()) {
		switch readingForAny(h, e, objects) {
		case readWhole:
			return readWhole
		case passThroughToGRPC:
			most = passThroughToGRPC
		}
	}
	return most
}

// readingForAny is readingFor the handler that is called in place of e, whichever that is.
func readingForAny(h *catalog.Hook, e *registry.Entry, objects *convert.Objects) reading {
	v := e.Variants
	switch {
	case v == nil:
		return readingFor(h, e, objects)
	case v.StableEntry == nil:
		return readingFor(h, v.CandidateEntry, objects)
	case v.CandidateEntry == nil:
		return readingFor(h, v.StableEntry, objects)
	}
	stable, candidate := readingFor(h, v.StableEntry, objects), readingFor(h, v.CandidateEntry, objects)
	if stable == readWhole || candidate == readWhole {
		return readWhole
	}
	return max(stable, candidate)
}

// readingFor returns how much of a request is read if it is for one handler.
func readingFor(h *catalog.Hook, e *registry.Entry, objects *convert.Objects) reading {
	switch {
	case e.Registration.InProcess != nil, e.Handler.Hook.Version != h.Version, len(e.Registration.Settings) > 0,
		cacheTTL(e) != 0,
		e.Handler.ClusterAPIVersion != "" && objects.Concern(h.Request.Descriptor()),
		release.Concerns(e.Handler.ClusterAPIRelease, h.Hook):
		return readWhole
	case e.Registration.ClientConfig.Protocol == registry.REST:
		return passThrough
	case e.Registration.ClientConfig.Protocol == registry.GRPC:
		return passThroughToGRPC
	}
	return readWhole
}
