// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

func TestCapacityOf(t *testing.T) {
	var list []infrav1.MachineCapacity
	for _, text := range []string{`{"size":"s","disk":{"gb":10}}`, `{"size":"s"}`, `{"cpus":[1,2]}`, `{"gpu":null}`} {
		list = append(list, infrav1.MachineCapacity{Parameters: &apiextensionsv1.JSON{Raw: []byte(text)}})
	}
	all := append(slices.Clone(list), infrav1.MachineCapacity{})
	for _, c := range []struct {
		parameters string
		list       []infrav1.MachineCapacity
		want       int // -1 for none
	}{
		{`{"size":"s","disk":{"gb":10.0,"fast":true}}`, list, 0},
		{`{"size":"s","disk":{"gb":11}}`, list, 1},
		{`{"size":"s","disk":10}`, list, 1},
		{`{"cpus":[1,2]}`, list, 2},
		{`{"cpus":[1,2,3]}`, list, -1},
		{`{"gpu":null}`, list, 3},
		{`{}`, list, -1},
		{``, list, -1},
		{``, all, 4},
		{`{"size":"l"}`, all, 4},
	} {
		got, want := capacityOf(c.list, []byte(c.parameters)), (*infrav1.MachineCapacity)(nil)
		if c.want >= 0 {
			want = &c.list[c.want]
		}
		if got != want {
			t.Errorf("%s: %v, want %v", c.parameters, got, want)
		}
	}
}
