// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extensions is the client of Runtime Extensions with which Cluster API's code renders: it asks a server for
// patches, variables and plans, and answers lifecycle hooks itself, which are never sent.
package extensions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// Server is a gateway or an extension.
type Server interface {
	Call(ctx context.Context, h *catalog.Hook, handler string, request proto.Message) (proto.Message, error)
	Close()
}

// Client implements Cluster API's client. It belongs to one render.
type Client struct {
	// Server answers; nil without any.
	Server Server
	Hooks  *catalog.Catalog
	Codec  *codec.Codec
	// Settings returns the settings of an ExtensionConfig, which Cluster API would add to requests.
	Settings func(ctx context.Context, extensionConfig string) map[string]string
	// Probe is called with the requests for patches of handlers whose names begin with ProbePrefix, which get no patches.
	Probe func(handler string, r *runtimehooksv1.GeneratePatchesRequest)

	// RegisteredAs is the name of the ExtensionConfig of a server that is an extension. Empty means the name in the last
	// ClusterClass that has named one of its handlers.
	RegisteredAs string

	offered map[string][]string // by hook; nil before discovery
}

// ProbePrefix is the beginning of the names of handlers that do not exist.
const ProbePrefix = "hookgate-render-probe-"

var _ runtimeclient.Client = (*Client)(nil)

// GetAllExtensions returns the handlers that the server has for a hook, as Cluster API would name them; none for a
// lifecycle hook.
func (c *Client) GetAllExtensions(
	ctx context.Context, h runtimecatalog.Hook, _ client.Object,
) ([]string, error) {
	name := runtimecatalog.HookName(h)
	if of, ok := c.Hooks.ByName(name); !ok || !of.ReadOnly() || c.Server == nil {
		return nil, nil
	}
	if err := c.discover(ctx); err != nil {
		return nil, err
	}
	names := slices.Clone(c.offered[name])
	for i := range names {
		if c.RegisteredAs != "" {
			names[i] += "." + c.RegisteredAs
		}
	}
	return names, nil
}

// CallAllExtensions is for lifecycle hooks, which no handler here has.
func (c *Client) CallAllExtensions(
	_ context.Context, _ runtimecatalog.Hook, _ client.Object, _ runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject,
) error {
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	return nil
}

// CallExtension asks a handler.
func (c *Client) CallExtension(
	ctx context.Context, h runtimecatalog.Hook, _ client.Object, name string, request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject, _ ...runtimeclient.CallExtensionOption,
) error {
	hookName := runtimecatalog.HookName(h)
	if strings.HasPrefix(name, ProbePrefix) {
		r, _ := request.(*runtimehooksv1.GeneratePatchesRequest)
		c.Probe(name, r)
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		return nil
	}
	if err := c.call(ctx, hookName, name, request, response); err != nil {
		return fmt.Errorf("%s: handler %q: %w", hookName, name, err)
	}
	return nil
}

func (c *Client) call(
	ctx context.Context, hookName, name string, request runtimehooksv1.RequestObject,
	response runtimehooksv1.ResponseObject,
) error {
	h, ok := c.Hooks.ByName(hookName)
	if !ok || !h.ReadOnly() {
		return errors.New("a render does not call this hook")
	}
	handler, err := c.resolve(ctx, hookName, name)
	if err != nil {
		return err
	}
	request, _ = request.DeepCopyObject().(runtimehooksv1.RequestObject)
	request.GetObjectKind().SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind(hookName + "Request"))
	if _, config, ok := strings.Cut(name, "."); ok && c.Settings != nil {
		settings := c.Settings(ctx, config)
		for k, v := range request.GetSettings() {
			if settings == nil {
				settings = map[string]string{}
			}
			settings[k] = v
		}
		request.SetSettings(settings)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	message := h.Request.New().Interface()
	if err := c.Codec.Decode(body, message); err != nil {
		return err
	}
	answer, err := c.Server.Call(ctx, h, handler, message)
	if err != nil {
		return err
	}
	if body, err = c.Codec.Append(nil, answer); err != nil {
		return err
	}
	if err := json.Unmarshal(body, response); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	if response.GetStatus() != runtimehooksv1.ResponseStatusSuccess {
		return fmt.Errorf("it answered %s: %s", response.GetStatus(), response.GetMessage())
	}
	return nil
}

// resolve returns the server's name for a handler that a ClusterClass names as it is registered with Cluster API:
// NAME.EXTENSIONCONFIG. An extension has NAME, and a gateway that the ClusterClass does not know yet
// NAME--EXTENSIONCONFIG.
func (c *Client) resolve(ctx context.Context, hookName, name string) (string, error) {
	if c.Server == nil {
		return "", errors.New("no server: give --server URL, or --extension-configs DIR")
	}
	if err := c.discover(ctx); err != nil {
		return "", err
	}
	handlers := c.offered[hookName]
	short, config, _ := strings.Cut(name, ".")
	switch {
	case slices.Contains(handlers, short):
		c.RegisteredAs = cmp.Or(config, c.RegisteredAs)
		return short, nil
	case slices.Contains(handlers, short+"--"+config):
		return short + "--" + config, nil
	}
	if len(handlers) == 0 {
		return "", errors.New("the server has no handler of this hook")
	}
	return "", fmt.Errorf("the server does not have this handler; it has %s", strings.Join(handlers, ", "))
}

// discover asks the server once which handlers it has.
func (c *Client) discover(ctx context.Context) error {
	if c.offered != nil {
		return nil
	}
	h, _ := c.Hooks.ByName("Discovery")
	answer, err := c.Server.Call(ctx, h, "", h.Request.New().Interface())
	if err != nil {
		return fmt.Errorf("discover the handlers of the server: %w", err)
	}
	d, _ := answer.(*hooksv1alpha1.DiscoveryResponse)
	offered := map[string][]string{}
	for _, handler := range d.GetHandlers() {
		name := handler.GetRequestHook().GetHook()
		offered[name] = append(offered[name], handler.GetName())
	}
	for _, names := range offered {
		slices.Sort(names)
	}
	c.offered = offered
	return nil
}

// WarmUp is not needed by renders, as are the functions below.
func (c *Client) WarmUp(*runtimev1.ExtensionConfigList) error { return nil }

// IsReady returns true.
func (c *Client) IsReady() bool { return true }

// Discover returns its argument.
func (c *Client) Discover(_ context.Context, x *runtimev1.ExtensionConfig) (*runtimev1.ExtensionConfig, error) {
	return x, nil
}

// Register does nothing.
func (c *Client) Register(*runtimev1.ExtensionConfig) error { return nil }

// Unregister does nothing.
func (c *Client) Unregister(*runtimev1.ExtensionConfig) error { return nil }
