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
// and another order each time. The key depends on neither, and answers are kept with the numbers of items in place of
// their UIDs.
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
	if patches, ok := m.(*hooksv1alpha1.GeneratePatchesRequest); ok {
		if r.uids, ok = d.items(patches.GetItems()); !ok {
			return Request{}, false
		}
		d.Message(m.ProtoReflect(), "handler", "items")
	} else {
		d.Message(m.ProtoReflect(), "handler")
	}
	r.Key = d.Key()
	return r, true
}

// items writes the digests of items without their UIDs, in an order of their own, and returns the UIDs in that order.
func (d Digest) items(items []*hooksv1alpha1.GeneratePatchesRequestItem) (uids []string, unique bool) {
	type item struct {
		uid string
		sum Key
	}
	seen, sorted := make(map[string]bool, len(items)), make([]item, len(items))
	for i, it := range items {
		if seen[it.GetUid()] {
			return nil, false
		}
		seen[it.GetUid()] = true
		one := NewDigest()
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
