// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxName is the number of characters of a name in a ClusterClass's status, into which Cluster API writes what it
// discovers.
const maxName = 256

// CheckName returns an error unless Cluster API takes the name of a variable.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case name == "builtin":
		return errors.New(`the name "builtin" is Cluster API's own`)
	case strings.Contains(name, "."):
		return fmt.Errorf("the name %q has a dot", name)
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Errorf("the name has more than %d characters", maxName)
	}
	return nil
}
