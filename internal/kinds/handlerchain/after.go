// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// Object is an object of a request as the patches of an answer make it.
type Object struct {
	// UID is that of an item, and Name says what the item is for. An object of an update in place has the name of its
	// member.
	UID, Name string
	JSON      []byte
	Changed   bool // by the answer
}

// After returns the objects of a request of GeneratePatches, CanUpdateMachine or CanUpdateMachineSet with the patches
// of an answer applied as Cluster API applies them, in the order of the request. Of other requests it returns none. An
// error that is not a *hook.Error is one of the answer.
func After(request, answer proto.Message, g jsonpatch.Guard) ([]Object, error) {
	switch request := request.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		response, _ := answer.(*hooksv1alpha1.GeneratePatchesResponse)
		p := NewPatches(request, g)
		if err := p.Add(response); err != nil {
			return nil, err
		}
		objects := make([]Object, len(p.objects))
		for i, item := range request.GetItems() {
			o := &objects[i]
			o.UID, o.Name, o.JSON = item.GetUid(), ItemName(item.GetHolderReference()), p.objects[i].json()
			o.Changed = !bytes.Equal(o.JSON, item.GetObject().GetRaw())
		}
		return objects, nil
	case *hooksv1alpha1.CanUpdateMachineRequest, *hooksv1alpha1.CanUpdateMachineSetRequest:
		c := NewInPlace(request, g)
		if err := c.Add(answer, nil); err != nil {
			return nil, err
		}
		var objects []Object
		for i := range c.objects {
			if o := &c.objects[i]; len(o.original) > 0 {
				after := o.current.json()
				objects = append(objects, Object{
					Name: o.pointer[1:], JSON: after, Changed: !bytes.Equal(after, o.original),
				})
			}
		}
		return objects, nil
	}
	return nil, nil
}
