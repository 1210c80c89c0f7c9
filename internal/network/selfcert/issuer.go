// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selfcert

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The Secrets, as deploy/ and those who read them name them.
//
//nolint:gosec // they are names
const (
	authoritySecret             = "hookgate-ca"
	servingSecret               = "hookgate-serving-cert"
	webhookSecret               = "hookgate-webhook-cert"
	callersSecret               = "hookgate-callers-ca"
	clusterAPISecret            = "hookgate-cluster-api-client"
	infrastructureWebhookSecret = "hookgate-infrastructure-webhook-cert"
	infrastructureSecret        = "hookgate-infrastructure-client"
)

// The Services whose names certificates are for, and the names in certificates of callers.
const (
	gatewayService               = "hookgate"
	webhookService               = "hookgate-webhook"
	infrastructureWebhookService = "hookgate-infrastructure-webhook"

	clusterAPIName     = "cluster-api"
	infrastructureName = "hookgate-infrastructure"
)

// InfrastructureWebhooks is the ValidatingWebhookConfiguration of the infrastructure provider. Where it is installed,
// the provider gets its certificates, too.
const InfrastructureWebhooks = "hookgate-infrastructure-validating-webhook"

const (
	// interval is how often everything is looked at, so that what is deleted comes back, and what another replica has
	// renewed is served.
	interval = 10 * time.Second
	// patience bounds one look, and startPatience the attempts at the start of a gateway that has no files yet.
	patience      = 10 * time.Second
	startPatience = 20 * time.Second // less than it takes a liveness probe to end the process
)

// Callers says whose certificates the gateway accepts from callers.
type Callers int

// The values of Callers.
const (
	// IssuedCallers have certificates of a CA that the Issuer makes, with one for Cluster API.
	IssuedCallers Callers = iota
	// OwnCallers have certificates of the CA in ca.crt of a Secret that the operator has made.
	OwnCallers
	// AnyCallers need none.
	AnyCallers
)

// Config describes what an Issuer makes. All fields are needed, but for those that say otherwise.
type Config struct {
	Client    client.Client // which reads past caches
	Namespace string        // of the Secrets
	Serving   Files
	Callers   Callers
	Webhook   Files           // empty without webhooks
	Webhooks  []client.Object // the names of what has a caBundle for the webhook: configurations and definitions
	Logger    *slog.Logger
	Now       func() time.Time // time.Now if nil
}

// Issuer makes and renews certificates.
type Issuer struct {
	c     Config
	owner string

	mu     sync.Mutex
	failed string // the error of the last look
}

// New returns an Issuer.
func New(c Config) *Issuer {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Issuer{c: c, owner: ownerName()}
}

// Start makes what is missing, and writes the files. If it cannot, files that were written before are good enough: the
// API server may be down.
func (i *Issuer) Start(ctx context.Context) error {
	var last error
	try := func(ctx context.Context) (bool, error) {
		last = i.Sync(ctx)
		if last != nil && !i.ready() && !apierrors.IsForbidden(last) {
			return false, nil // once more
		}
		return true, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, startPatience, true, try); err != nil || !i.ready() {
		return errors.Join(last, ctx.Err())
	}
	i.note(last)
	return nil
}

// ready reports whether the files are there.
func (i *Issuer) ready() bool {
	return i.c.Serving.exist() && (i.c.Webhook == Files{} || i.c.Webhook.exist()) &&
		(i.c.Callers == AnyCallers || i.c.Serving.hasCA())
}

// Run looks at everything again and again, until ctx is done.
func (i *Issuer) Run(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := i.Sync(ctx); ctx.Err() == nil {
			i.note(err)
		}
	}, interval)
	return nil
}

// note logs an error once.
func (i *Issuer) note(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != i.failed {
		i.c.Logger.Error("make certificates: the existing ones stay in use", "error", err)
	}
	i.failed = text
}

// Warning returns why the last look at the certificates failed, or nothing.
func (i *Issuer) Warning() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed
}

// Sync makes and renews what is due now, sets the caBundle of webhooks, and writes the files.
func (i *Issuer) Sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("not done within "+patience.String()))
	defer cancel()
	infrastructure, err := i.hasInfrastructure(ctx)
	if err != nil {
		return err
	}
	again := func(do func(context.Context, bool) error) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return do(ctx, infrastructure) })
	}
	return errors.Join(again(i.servers), again(i.callers))
}

// leaf is a certificate that a CA signs.
type leaf struct {
	*pair
	template *x509.Certificate
	lifetime time.Duration
	files    Files // empty if another process has it
}

// servers makes what the gateway shows to callers and to the API server, and their CA.
func (i *Issuer) servers(ctx context.Context, infrastructure bool) error {
	authority, err := i.get(ctx, authoritySecret)
	if err != nil {
		return err
	}
	wanted := []struct {
		secret, service string
		files           Files
		skip            bool
	}{
		{servingSecret, gatewayService, i.c.Serving, false},
		{webhookSecret, webhookService, i.c.Webhook, i.c.Webhook == Files{}},
		{infrastructureWebhookSecret, infrastructureWebhookService, Files{}, !infrastructure},
	}
	var leaves []*leaf
	for _, w := range wanted {
		if w.skip {
			continue
		}
		l := &leaf{template: i.server(w.service), lifetime: servingLifetime, files: w.files}
		if l.pair, err = i.get(ctx, w.secret); err != nil {
			return err
		}
		leaves = append(leaves, l)
	}
	if err := i.renewAuthority(authority); err != nil {
		return err
	}
	bundle := i.bundle(authority, leaves)
	if authority.own {
		if err := i.set(ctx, authority, bundle); err != nil {
			return err
		}
	}
	// Those who verify a certificate know its CA before it is shown.
	injected := i.inject(ctx, bundle)
	mayReplace := injected == nil && !i.c.Now().Before(authority.cert.NotBefore.Add(skew+spread))
	errs := []error{injected}
	for _, l := range leaves {
		err := i.issue(ctx, authority, l, bundle, mayReplace)
		if err == nil && l.files != (Files{}) {
			err = l.files.write(l.pair)
		}
		errs = append(errs, err)
	}
	return joined(errs)
}

// callers makes the CA of callers, certificates for some, and the file with that CA.
func (i *Issuer) callers(ctx context.Context, infrastructure bool) error {
	if i.c.Callers == AnyCallers {
		return nil
	}
	authority, err := i.get(ctx, callersSecret)
	switch {
	case err != nil:
		return err
	case i.c.Callers == OwnCallers && len(authority.data(caKey)) == 0:
		return fmt.Errorf("the Secret %s/%s has no %s: put the CA of your callers' certificates there",
			i.c.Namespace, callersSecret, caKey)
	case i.c.Callers == OwnCallers || !authority.own && len(authority.data(corev1.TLSPrivateKeyKey)) == 0:
		return i.c.Serving.writeCA(authority) // of the operator, who keeps its key
	}
	if err := i.renewAuthority(authority); err != nil {
		return err
	}
	// Not the CA before it: to delete the Secret is to revoke what that one has signed.
	bundle := []*x509.Certificate{authority.cert}
	if authority.own {
		if err := i.set(ctx, authority, bundle); err != nil {
			return err
		}
	}
	errs := []error{i.c.Serving.writeCA(authority)}
	for _, w := range []struct {
		secret, name string
		lifetime     time.Duration
	}{
		{clusterAPISecret, clusterAPIName, authorityLifetime}, // copies of it do not follow a renewal
		{infrastructureSecret, infrastructureName, servingLifetime},
	} {
		if w.secret == infrastructureSecret && !infrastructure {
			continue
		}
		l := &leaf{template: callerOf(w.name), lifetime: w.lifetime}
		if l.pair, err = i.get(ctx, w.secret); err == nil {
			err = i.issue(ctx, authority, l, bundle, true)
		}
		errs = append(errs, err)
	}
	return joined(errs)
}

// server returns what the certificate of a Service says.
func (i *Issuer) server(service string) *x509.Certificate {
	name := service + "." + i.c.Namespace + ".svc"
	return &x509.Certificate{
		DNSNames: []string{name, name + ".cluster.local"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// callerOf returns what the certificate of a caller says.
func callerOf(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// renewAuthority makes a CA if there is none, and renews one that is due, under its key.
func (i *Issuer) renewAuthority(a *pair) error {
	if a.bad == nil && !a.cert.IsCA {
		a.bad = errors.New("it is not a CA")
	}
	var err error
	switch now := i.c.Now(); {
	case a.bad != nil && !a.own:
		return i.refuse(a, "CA with its key", a.bad)
	case a.bad != nil:
		if a.key, err = newKey(); err != nil {
			return err
		}
		a.cert, err = newAuthority(a.name, a.key, now)
	case a.own && isDue(a.cert, now):
		a.cert, err = newAuthority(a.name, a.key, now)
	}
	a.bad = nil
	return err
}

// bundle returns the authorities with which certificates of servers are verified: the CA, and those before it until all
// leaves have been of the CA for a while.
func (i *Issuer) bundle(authority *pair, leaves []*leaf) []*x509.Certificate {
	now := i.c.Now()
	old := slices.Clone(authority.bundle)
	all := true
	for _, l := range leaves {
		all = all && l.bad == nil && authority.signed(l.cert) && now.After(l.cert.NotBefore.Add(skew+retired))
		old = append(old, l.bundle...)
	}
	bundle := []*x509.Certificate{authority.cert}
	for _, c := range old {
		if !all && now.Before(c.NotAfter) && !sameKey(c, authority.cert) && !slices.ContainsFunc(bundle, c.Equal) {
			bundle = append(bundle, c)
		}
	}
	return bundle
}

// issue makes a certificate if there is none, and replaces one that is due. One that another CA has signed stays until
// mayReplace.
func (i *Issuer) issue(
	ctx context.Context, authority *pair, l *leaf, bundle []*x509.Certificate, mayReplace bool,
) error {
	if !l.own {
		if l.bad != nil {
			return i.refuse(l.pair, "usable certificate with its key", l.bad)
		}
		return nil
	}
	now := i.c.Now()
	ours := l.bad == nil && authority.signed(l.cert)
	// A new CA waits until callers know it, unless they would refuse the present certificate anyway.
	if l.bad != nil || ours && (isDue(l.cert, now) || !hasNames(l.cert, l.template)) || !ours && mayReplace {
		var err error
		if l.key, err = newKey(); err != nil {
			return err
		}
		if l.cert, err = newLeaf(l.template, l.key, authority, now, l.lifetime); err != nil {
			return err
		}
		l.bad = nil
	}
	return i.set(ctx, l.pair, bundle)
}

// joined returns the errors as one; a conflict alone, so that the look is repeated.
func joined(errs []error) error {
	if n := slices.IndexFunc(errs, apierrors.IsConflict); n >= 0 {
		return errs[n]
	}
	return errors.Join(errs...)
}
