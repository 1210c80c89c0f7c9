// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// check returns every error within a single registration, in the order of its fields.
func check(reg *Registration) error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s: %s", reg.Describe(), field, fmt.Sprintf(format, args...)))
	}

	if err := CheckName(reg.Name); err != nil {
		wrong("name", "%v", err)
	}
	if err := reg.ClientConfig.CheckURL(); err != nil && reg.InProcess == nil {
		wrong("clientConfig.url", "%v", err)
	}

	seen := make(map[string]int, len(reg.Handlers))
	for i, h := range reg.Handlers {
		field := func(name string) string { return "handlers[" + strconv.Itoa(i) + "]." + name }
		lower := strings.ToLower(h.Name)
		if first, ok := seen[lower]; ok {
			wrong(field("name"), "%v", SameName(reg.Handlers[first].Name, h.Name))
			continue
		}
		seen[lower] = i
		if err := CheckName(h.Name); err != nil {
			wrong(field("name"), "%v", err)
		}
		if h.Hook.Group == "" || h.Hook.Version == "" || h.Hook.Hook == "" {
			wrong(field("hook"), "%q is not of the form group/version/hook", h.Hook)
		}
		if h.Timeout <= 0 || h.Timeout > limits.Timeout {
			wrong(field("timeout"), "%s is not more than 0s and at most %s", h.Timeout, limits.Timeout)
		}
		if h.ClusterAPIVersion != "" {
			if err := hook.CheckClusterAPIVersion(h.ClusterAPIVersion); err != nil {
				wrong(field("clusterAPIVersion"), "%v", err)
			}
		}
		if h.FailurePolicy != hook.Fail && h.FailurePolicy != hook.Ignore {
			wrong(field("failurePolicy"), "%q is neither %q nor %q", h.FailurePolicy, hook.Fail, hook.Ignore)
		}
	}
	return errors.Join(errs...)
}

// CheckName returns an error unless the name of a handler or an ExtensionConfig is a DNS-1123 label.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("must not be empty")
	case len(name) > validation.DNS1123LabelMaxLength:
		return fmt.Errorf("must have at most %d characters, has %d", validation.DNS1123LabelMaxLength, len(name))
	case isLabel(name):
		return nil
	case isLabel(strings.ToLower(name)):
		return fmt.Errorf("%q must be in lower case: in paths, upper and lower case are the same", name)
	}
	return fmt.Errorf(
		"%q must consist of lower case letters, digits and '-', and begin and end with a letter or digit", name,
	)
}

// isLabel reports whether a name of the right length is a DNS-1123 label. The library matches a regular expression,
// which takes long for the handlers of many extensions.
func isLabel(name string) bool {
	for i := range len(name) {
		letterOrDigit := 'a' <= name[i] && name[i] <= 'z' || '0' <= name[i] && name[i] <= '9'
		if !letterOrDigit && (name[i] != '-' || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return true
}

// SameName returns the error of two handlers of one extension whose names, in lower case, are the same path.
func SameName(first, second string) error {
	if first == second {
		return fmt.Errorf("another handler is also named %q", second)
	}
	return fmt.Errorf("%q and %q differ only in case: in paths, upper and lower case are the same", first, second)
}

// CheckURL returns an error unless c.URL is a valid URL for c.Protocol.
func (c *ClientConfig) CheckURL() error {
	e, err := endpoint.Parse(c.URL, c.Protocol.schemes()...)
	switch {
	case err != nil:
		return err
	case c.Protocol == GRPC && e.Prefix != "":
		return endpoint.ErrPath
	case e.Scheme == endpoint.GRPC && e.Port == "":
		return errors.New("must have a port")
	case e.Scheme == endpoint.GRPC && !e.IsLocal():
		return errors.New("must be on loopback, because grpc:// has no TLS; use grpcs://")
	}
	return nil
}
