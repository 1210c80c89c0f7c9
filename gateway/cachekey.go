// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/answercache"
	"github.com/hookgate/hookgate/internal/extension"
)

// cacheKey identifies the content of a request to a handler. Cluster API gives the items of GeneratePatches new UIDs
// and another order each time. The key depends on neither, and answers are kept with the numbers of items in place of
// their UIDs.
type cacheKey struct {
	answercache.Key
	// uids has the UIDs of the items, in the order of the items' contents. Items with equal contents keep their order.
	uids []string
}

// isDeterministic reports whether the hook of a request is deterministic by its contract: equal requests have equal
// answers, whatever is the case elsewhere.
func isDeterministic(request proto.Message) bool {
	switch request.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest, *hooksv1alpha1.ValidateTopologyRequest,
		*hooksv1alpha1.DiscoverVariablesRequest:
		return true
	}
	return false
}

// cacheKeyOf returns the key of a call of a deterministic hook. It reports whether there is one: UIDs that are not
// unique cannot be told apart in an answer.
func cacheKeyOf(c extension.Call) (cacheKey, bool) {
	h := answercache.NewDigest()
	r := c.Handler.Registration
	for _, part := range []string{
		c.Handler.Name, c.Handler.Handler.Hook.String(), c.Handler.Handler.ClusterAPIVersion, c.Hook.String(),
		string(r.ClientConfig.Protocol), r.ClientConfig.URL, string(r.ClientConfig.CABundle),
	} {
		h.Text(part)
	}
	var k cacheKey
	message := c.Request.ProtoReflect()
	if patches, ok := c.Request.(*hooksv1alpha1.GeneratePatchesRequest); ok {
		if k.uids, ok = digestItems(h, patches.GetItems()); !ok {
			return cacheKey{}, false
		}
		h.Message(message, "handler", "items")
	} else {
		h.Message(message, "handler")
	}
	k.Key = h.Key()
	return k, true
}

// digestItems writes the digests of items without their UIDs, in an order of their own, and returns the UIDs in that
// order.
func digestItems(
	d answercache.Digest, items []*hooksv1alpha1.GeneratePatchesRequestItem,
) (uids []string, unique bool) {
	type item struct {
		uid string
		sum answercache.Key
	}
	seen, sorted := make(map[string]bool, len(items)), make([]item, len(items))
	for i, it := range items {
		if seen[it.GetUid()] {
			return nil, false
		}
		seen[it.GetUid()] = true
		one := answercache.NewDigest()
		one.Message(it.ProtoReflect(), "uid")
		sorted[i] = item{it.GetUid(), one.Key()}
	}
	slices.SortStableFunc(sorted, func(a, b item) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	uids = make([]string, len(sorted))
	for i, it := range sorted {
		uids[i] = it.uid
		d.Bytes(it.sum[:])
	}
	return uids, true
}

// encode returns the form in which an answer is kept. It reports whether there is one: an answer about an item that the
// request does not have means nothing for another request.
func (k *cacheKey) encode(response proto.Message) ([]byte, bool) {
	if patches, ok := response.(*hooksv1alpha1.GeneratePatchesResponse); ok {
		numbers := make(map[string]string, len(k.uids))
		for i, uid := range k.uids {
			numbers[uid] = strconv.Itoa(i)
		}
		renamed := &hooksv1alpha1.GeneratePatchesResponse{
			Status: patches.GetStatus(), Message: patches.GetMessage(), UnknownMembers: patches.GetUnknownMembers(),
		}
		for _, it := range patches.GetItems() {
			number, ok := numbers[it.GetUid()]
			if !ok {
				return nil, false
			}
			renamed.Items = append(renamed.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
				Uid: number, PatchType: it.GetPatchType(), Patch: it.GetPatch(), UnknownMembers: it.GetUnknownMembers(),
			})
		}
		response = renamed
	}
	text, err := proto.Marshal(response)
	return text, err == nil
}

// decode returns an answer that is kept as an answer to the request of the key.
func (k *cacheKey) decode(text []byte, into proto.Message) error {
	if err := proto.Unmarshal(text, into); err != nil {
		return err
	}
	if patches, ok := into.(*hooksv1alpha1.GeneratePatchesResponse); ok {
		for _, it := range patches.GetItems() {
			number, err := strconv.Atoi(it.GetUid())
			if err != nil {
				return err
			}
			it.Uid = k.uids[number]
		}
	}
	return nil
}
