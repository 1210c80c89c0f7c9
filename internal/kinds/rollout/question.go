// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/answercache"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

// Identify returns what tells the question of a request from others, and its content, for a handler whose name is known
// besides: the hook, the settings, and the objects that it is about, without what Cluster API makes anew each time. It
// reports whether there is a question: a request about no object, such as one without items, asks nothing.
func Identify(h *catalog.Hook, request proto.Message) (question, content string, ok bool) {
	d := answercache.NewDigest()
	if r, has := request.(interface{ GetSettings() map[string]string }); has {
		settings := r.GetSettings()
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			d.Text(name)
			d.Text(settings[name])
		}
	}
	d.Text("") // the settings end
	if !identifyObjects(d, request) {
		return "", "", false
	}
	key, isClear := answercache.RequestOf(request)
	if !isClear { // two items with one uid, of which Cluster API sends none
		return "", "", false
	}
	return h.Hook + "/" + short(d.Key()), short(key.Key), true
}

// ReconcileOf identifies the reconcile that a request is of, or returns nothing if the request does not tell: all
// GeneratePatches requests of one have the same UIDs, which Cluster API makes for each reconcile anew.
func ReconcileOf(request proto.Message) string {
	r, ok := request.(*hooksv1alpha1.GeneratePatchesRequest)
	if !ok || len(r.GetItems()) == 0 {
		return ""
	}
	uids := make([]string, 0, len(r.GetItems()))
	for _, item := range r.GetItems() {
		uids = append(uids, item.GetUid())
	}
	slices.Sort(uids)
	d := answercache.NewDigest()
	for _, uid := range uids {
		d.Text(uid)
	}
	return short(d.Key())
}

func short(k answercache.Key) string { return hex.EncodeToString(k[:16]) }

// identifyObjects writes the objects that a request is about, and reports whether there are any, if the hook is about
// some.
func identifyObjects(d answercache.Digest, request proto.Message) bool {
	var all []answercache.Key
	n, item := subject.Items(request)
	for i := range n {
		holder, kind := item(i).GetHolderReference(), textOf(item(i).GetObject().GetRaw(), "kind")
		if kind == "" || holder.GetKind() == "" || holder.GetName() == "" {
			continue // nothing that Cluster API has
		}
		one := answercache.NewDigest()
		for _, part := range []string{
			kind, holder.GetKind(), holder.GetNamespace(), holder.GetName(), holder.GetFieldPath(),
		} {
			one.Text(part)
		}
		all = append(all, one.Key())
	}
	if item == nil { // the hook is about one object, or none
		kind, namespace, name := subject.Object(request)
		d.Text(kind)
		d.Text(namespace)
		d.Text(name)
		return kind == "" || name != ""
	}
	slices.SortFunc(all, func(a, b answercache.Key) int { return bytes.Compare(a[:], b[:]) })
	for _, key := range all {
		d.Bytes(key[:])
	}
	return len(all) > 0
}

func textOf(object []byte, path ...string) string {
	value, err := jsonscan.Lookup(object, path...)
	if err != nil {
		return ""
	}
	s, _ := jsonscan.String(value)
	return s
}

// topology is the reconcile in which Cluster API asks for the patches of a Cluster, one after the other, and then
// whether what they make is valid.
const topology = "topology"

// reconcileOf returns the reconcile in which a question is asked, by the hook that it begins with. Nothing is of every
// one.
func reconcileOf(question string) string {
	switch h, _, _ := strings.Cut(question, "/"); h {
	case "GeneratePatches", "ValidateTopology":
		return topology
	default:
		return h
	}
}
