// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// injectAnnotation makes cert-manager write the caBundle.
const injectAnnotation = certManagerPrefix + "inject-ca-from"

// inject sets the caBundle of the webhooks that are installed.
func (i *Issuer) inject(ctx context.Context, bundle []*x509.Certificate) error {
	encoded, err := cert.EncodeCertificates(bundle...)
	if err != nil {
		return err
	}
	var errs []error
	for _, named := range i.c.Webhooks {
		errs = append(errs, i.injectOne(ctx, named, encoded))
	}
	return joined(errs)
}

func (i *Issuer) injectOne(ctx context.Context, named client.Object, bundle []byte) error {
	object, _ := named.DeepCopyObject().(client.Object)
	switch err := i.c.Client.Get(ctx, client.ObjectKeyFromObject(named), object); {
	case apierrors.IsNotFound(err):
		return nil // it is not installed, or not yet
	case err != nil:
		return explain("get", object, named.GetName(), err)
	}
	if from, ok := object.GetAnnotations()[injectAnnotation]; ok {
		return explain("patch", object, named.GetName(), fmt.Errorf(
			"the annotation %s=%s makes cert-manager write the caBundle: remove the annotation", injectAnnotation, from))
	}
	before, _ := object.DeepCopyObject().(client.Object)
	changed := false
	for _, bundleOf := range i.bundles(object) {
		if !bytes.Equal(*bundleOf, bundle) {
			*bundleOf, changed = bundle, true
		}
	}
	if !changed {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := i.c.Client.Patch(ctx, object, patch, client.FieldOwner(manager)); err != nil {
		return explain("patch", object, named.GetName(), err)
	}
	i.c.Logger.Info("caBundle set", "kind", reflect.TypeOf(object).Elem().Name(), "name", object.GetName())
	return nil
}

// bundles returns the caBundles of an object that are for the Services of the webhooks.
func (i *Issuer) bundles(object client.Object) (found []*[]byte) {
	add := func(bundle *[]byte, namespace, service string) {
		if namespace == i.c.Namespace && (service == webhookService || service == infrastructureWebhookService) {
			found = append(found, bundle)
		}
	}
	admission := func(c *admissionregistrationv1.WebhookClientConfig) {
		if c.Service != nil {
			add(&c.CABundle, c.Service.Namespace, c.Service.Name)
		}
	}
	switch o := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for n := range o.Webhooks {
			admission(&o.Webhooks[n].ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for n := range o.Webhooks {
			admission(&o.Webhooks[n].ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil &&
			c.Webhook.ClientConfig.Service != nil {
			to := c.Webhook.ClientConfig
			add(&to.CABundle, to.Service.Namespace, to.Service.Name)
		}
	}
	return found
}

// hasInfrastructure reports whether the infrastructure provider is installed.
func (i *Issuer) hasInfrastructure(ctx context.Context) (bool, error) {
	named := func(o client.Object) bool { return o.GetName() == InfrastructureWebhooks }
	if !slices.ContainsFunc(i.c.Webhooks, named) {
		return false, nil
	}
	key := client.ObjectKey{Name: InfrastructureWebhooks}
	err := i.c.Client.Get(ctx, key, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, explain("get", &admissionregistrationv1.ValidatingWebhookConfiguration{}, key.Name, err)
	}
	return true, nil
}

// explain returns an error about an object with a caBundle, with what to do about it.
func explain(verb string, object client.Object, name string, err error) error {
	kind := reflect.TypeOf(object).Elem().Name()
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s %s %s: the gateway has no permission: apply the ClusterRole of "+
			"deploy/components/self-certificates: %w", verb, kind, name, err)
	}
	return fmt.Errorf("%s %s %s: %w", verb, kind, name, err)
}
