// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package answercache

import (
	"bytes"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// Request identifies the content of a request to a handler. Cluster API gives the items of GeneratePatches new UIDs
// each time, and those of ValidateTopology, too, another order. The key depends on neither, and answers are kept with
// the numbers of items in place of their UIDs.
type Request struct {
	Key

	// uids has the UIDs of the items, in the order of the items' contents. Items with equal contents keep their order.
	uids []string
}

// RequestOf returns what identifies a request, together with parts that say what it is sent to. It reports whether it
// can be identified: UIDs that are not unique cannot be told apart in an answer.
func RequestOf(m proto.Message, parts ...string) (Request, bool) {
	d := NewDigest()
	for _, part := range parts {
		d.Text(part)
	}
	var r Request
	switch m := m.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		r.uids = writeItems(d, m.GetItems(), (*hooksv1alpha1.GeneratePatchesRequestItem).GetUid)
		if len(slices.Compact(slices.Sorted(slices.Values(r.uids)))) < len(r.uids) {
			return Request{}, false
		}
	case *hooksv1alpha1.ValidateTopologyRequest:
		writeItems(d, m.GetItems(), func(*hooksv1alpha1.ValidateTopologyRequestItem) string { return "" })
	}
	d.Message(m.ProtoReflect(), "handler", "items")
	r.Key = d.Key()
	return r, true
}

// writeItems writes the digests of items without their UIDs, in an order of their own, and returns the UIDs in that
// order.
func writeItems[M proto.Message](d Digest, items []M, uid func(M) string) []string {
	type item struct {
		uid string
		sum Key
	}
	sorted := make([]item, len(items))
	for i, it := range items {
		one := NewDigest()
		one.Message(it.ProtoReflect(), "uid")
		sorted[i] = item{uid(it), one.Key()}
	}
	slices.SortStableFunc(sorted, func(a, b item) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	uids := make([]string, len(sorted))
	for i, it := range sorted {
		uids[i] = it.uid
		d.Bytes(it.sum[:])
	}
	return uids
}

// Encode returns the form in which an answer is kept. It reports whether there is one: an answer about an item that the
// request does not have means nothing for another request.
func (r *Request) Encode(response proto.Message) ([]byte, bool) {
	if patches, ok := response.(*hooksv1alpha1.GeneratePatchesResponse); ok {
		numbers := make(map[string]string, len(r.uids))
		for i, uid := range r.uids {
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
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(response)
	return text, err == nil
}

// Decode returns an answer that is kept as an answer to the request.
func (r *Request) Decode(text []byte, into proto.Message) error {
	if err := proto.Unmarshal(text, into); err != nil {
		return err
	}
	if patches, ok := into.(*hooksv1alpha1.GeneratePatchesResponse); ok {
		for _, it := range patches.GetItems() {
			number, err := strconv.Atoi(it.GetUid())
			if err != nil {
				return err
			}
			it.Uid = r.uids[number]
		}
	}
	return nil
}
