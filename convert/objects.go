// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"google.golang.org/protobuf/proto"
)

// The versions of Cluster API's objects, of group cluster.x-k8s.io.
const (
	V1Beta1 = "v1beta1"
	V1Beta2 = "v1beta2"
)

// Objects converts the objects that requests of hooks embed. It is immutable and safe for concurrent use.
type Objects struct {
	refs *References
}

// NewObjects returns Objects that ask refs for the versions of references.
func NewObjects(refs *References) *Objects { return &Objects{refs: refs} }

// Converted is a request as a handler reads it.
type Converted struct {
	// Message is the request: the very message that was given if nothing in it had to be converted.
	Message proto.Message
	// Losses are the members that the handler's version cannot express, sorted by path.
	Losses []Loss
}

// Loss is a member that a conversion could not express.
type Loss struct {
	// Path names the member: the object, then the names of members, with [*] for indices of lists and keys of maps.
	Path string
}

// Request converts the objects of a request to a version of group cluster.x-k8s.io.
func (o *Objects) Request(req proto.Message, to string) (Converted, error) {
	return Converted{Message: req}, nil
}

// Response brings an answer to the converted request back to what its caller reads.
func (c Converted) Response(resp proto.Message) (proto.Message, []Loss, error) {
	return resp, nil, nil
}

// Lossy returns every path that a conversion of that kind can lose, sorted.
func Lossy(kind, from, to string) []string { return nil }
