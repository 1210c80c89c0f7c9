// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hookversions is a group of hooks that has three versions, for tests: Cluster API's has one. Its protos are a
// module beside the contract's, of the same shape, and its catalog takes the place of the product's in the codec, the
// transports and the servers, which are the product's own. Only its messages are generated; the gateway makes
// the services from the descriptors.
//
// v1 is the hub. The conversion of v1beta1 is derived from the descriptors, that of v1alpha1 is written by hand; both
// rename, default and drop members, and v1alpha1 has one member where the others have two. v1alpha1 lacks one of the
// hooks and is deprecated; v0alpha1 was removed.
package hookversions
