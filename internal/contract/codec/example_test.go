// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"fmt"
	"log"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// An extension decodes what Cluster API posts and encodes its answer.
func Example() {
	c := codec.New(catalog.New())

	body := []byte(`{"settings":{"mode":"strict"},"items":[{"uid":"1","object":{"kind":"Pool"}}],"isNew":true}`)
	req := &hooksv1alpha1.ValidateTopologyRequest{}
	if err := c.Decode(body, req); err != nil {
		log.Fatal(err)
	}
	fmt.Println(req.Settings["mode"])
	fmt.Println(string(req.Items[0].Object.Raw))
	fmt.Println(string(req.UnknownMembers["isNew"].Raw))

	answer, err := c.Append(nil, &hooksv1alpha1.ValidateTopologyResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(answer))
	// Output:
	// strict
	// {"kind":"Pool"}
	// true
	// {"kind":"ValidateTopologyResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success"}
}

// An error names the member.
func ExampleCodec_Decode_error() {
	c := codec.New(catalog.New())
	err := c.Decode([]byte(`{"items":[{"uid":"1"},{"uid":2}]}`), &hooksv1alpha1.GeneratePatchesRequest{})
	fmt.Println(err)
	// Output:
	// items[1].uid: want a string, got a number
}
