// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
)

// Infrastructure writes a row for each object of one kind of the infrastructure provider. If wide, it has more columns.
func Infrastructure(w io.Writer, objects []status.InfrastructureObject, now time.Time, wide bool) error {
	t := table.New(w)
	columns := []string{"NAMESPACE", "NAME", "CLUSTER", "STATE", "SINCE", "INSTANCES"}
	if wide {
		columns = append(columns, "CLASS", "PROVIDER ID")
	}
	t.Columns(append(columns, "MESSAGE")...)
	t.Optional("MESSAGE", "CLUSTER", "INSTANCES", "SINCE")
	t.Below("NAME", "MESSAGE")
	for i := range objects {
		o := &objects[i]
		row := []string{o.Namespace, o.Name, o.Cluster, o.State, Age(o.Since, now), Instances(o)}
		if wide {
			row = append(row, o.Class, o.ProviderID)
		}
		t.Row(append(row, InfrastructureMessage(o, now))...)
	}
	return t.Flush()
}

// Instances says how many instances the backend has of those that the objects say, and how many a pool should have.
func Instances(o *status.InfrastructureObject) string {
	s := strconv.Itoa(o.Instances) + "/" + strconv.Itoa(o.Objects)
	if o.Wanted != nil && *o.Wanted != o.Objects {
		s += fmt.Sprintf(" (of %d)", *o.Wanted)
	}
	return s
}

// InfrastructureMessage says which hook has failed since when, or else what an object waits for.
func InfrastructureMessage(o *status.InfrastructureObject, now time.Time) string {
	if f := o.Failure; f != nil {
		return fmt.Sprintf("%s failing for %s: %s: %s", f.Hook, Age(&f.Since, now), f.Reason, f.Message)
	}
	return o.Message
}
