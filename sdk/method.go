// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/hookgate/hookgate/sdk/internal/contract"
)

// service is a gRPC service that has a method with a handler, or a discovery.
type service struct {
	descriptor protoreflect.ServiceDescriptor
	methods    []*method
}

// method is the method of a hook.
type method struct {
	hook       string // its name
	apiVersion string
	fullMethod string // as gRPC has it: /service/method
	request    protoreflect.MessageType
	response   protoreflect.MessageType
	discovery  bool       // whether it lists the handlers of its package
	handlers   []*handler // those of the hook; of a discovery, at most one
}

// method returns the method that takes the request. It adds the service to the extension, with the discovery of the
// package.
func (x *Extension) method(request protoreflect.MessageType) (*method, error) {
	name, file := request.Descriptor().FullName(), request.Descriptor().ParentFile().Path()
	apiVersion, err := x.apiVersion(name.Parent())
	if err != nil {
		return nil, err
	}
	takes := find(name.Parent(),
		func(s protoreflect.ServiceDescriptor) bool { return s.ParentFile().Path() == file },
		func(d protoreflect.MethodDescriptor) bool { return d.Input().FullName() == name })
	if takes == nil {
		return nil, fmt.Errorf("%s is not the request of any hook: want one, such as *BeforeClusterUpgradeRequest", name)
	}
	discovery := find(name.Parent(),
		func(s protoreflect.ServiceDescriptor) bool { return strings.Contains(string(s.Name()), "Discover") }, isDiscovery)
	if discovery != nil {
		if _, err := x.add(discovery, apiVersion); err != nil {
			return nil, err
		}
	}
	return x.add(takes, apiVersion)
}

// find returns the first method of a proto package that is wanted, or nil. It looks at likely services first: the
// runtime builds all descriptors of a file, a few hundred KiB of them, when the methods in it are looked at.
func find(
	pkg protoreflect.FullName, likely func(protoreflect.ServiceDescriptor) bool,
	wanted func(protoreflect.MethodDescriptor) bool,
) (found protoreflect.MethodDescriptor) {
	for _, first := range []bool{true, false} {
		protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(file protoreflect.FileDescriptor) bool {
			for i := range file.Services().Len() {
				s := file.Services().Get(i)
				if likely(s) != first {
					continue
				}
				for j := range s.Methods().Len() {
					if d := s.Methods().Get(j); wanted(d) {
						found = d
						return false
					}
				}
			}
			return true
		})
		if found != nil {
			return found
		}
	}
	return nil
}

// apiVersion returns the group and version of the hooks of a proto package.
func (x *Extension) apiVersion(pkg protoreflect.FullName) (string, error) {
	group := cmp.Or(contract.Group(pkg), x.Groups[string(pkg)])
	if group == "" {
		return "", fmt.Errorf("no known group of hooks has the proto package %s: name the group in Extension.Groups", pkg)
	}
	return group + "/" + string(pkg.Name()), nil
}

// isDiscovery reports whether the answer of a method lists handlers.
func isDiscovery(d protoreflect.MethodDescriptor) bool {
	f := d.Output().Fields().ByName("handlers")
	return f != nil && f.IsList() && f.Message() != nil && f.Message().Name() == "ExtensionHandler"
}

// add returns the method of the extension for d.
func (x *Extension) add(d protoreflect.MethodDescriptor, apiVersion string) (*method, error) {
	parent := d.Parent().(protoreflect.ServiceDescriptor) //nolint:forcetypeassert // the parent of a method is one
	if x.services == nil {
		x.services = map[string]*service{}
	}
	s := x.services[string(parent.FullName())]
	if s == nil {
		s = &service{descriptor: parent}
		x.services[string(parent.FullName())] = s
	}
	for _, m := range s.methods {
		if m.hook == string(d.Name()) {
			return m, nil
		}
	}
	request, errRequest := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	response, errResponse := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if err := errors.Join(errRequest, errResponse); err != nil {
		return nil, fmt.Errorf("messages of %s: %w", d.FullName(), err)
	}
	m := &method{
		hook: string(d.Name()), apiVersion: apiVersion, discovery: isDiscovery(d),
		fullMethod: fmt.Sprintf("/%s/%s", parent.FullName(), d.Name()), request: request, response: response,
	}
	s.methods = append(s.methods, m)
	return m, nil
}

// The values of the enum of a status, which are the same in every version of the contract.
const (
	success = protoreflect.EnumNumber(1)
	failure = protoreflect.EnumNumber(2)
)

// statusField returns the member of a response with the status, or nil if it has none.
func statusField(d protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	f := d.Fields().ByName("status")
	if f == nil || f.Enum() == nil || f.Enum().Values().ByNumber(failure) == nil {
		return nil
	}
	return f
}

// shallow returns a copy of a message whose fields can be set: a handler may return the same message in several calls.
func shallow(m protoreflect.Message) protoreflect.Message {
	out := m.New()
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		out.Set(f, v)
		return true
	})
	out.SetUnknown(m.GetUnknown())
	return out
}
