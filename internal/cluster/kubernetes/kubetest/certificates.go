package kubetest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificates of one control plane. Its own key exists only in this process.
type authority struct {
	dir         string
	key         crypto.Signer
	certificate *x509.Certificate
	pem         []byte
}

// newAuthority makes an authority, and writes files into a folder: the certificates of the servers and of the API
// server as a client, and the key for tokens of service accounts. Certificates begin before now, for clocks that are
// changed.
func newAuthority(t testing.TB, dir, address string) *authority {
	t.Helper()
	const before = 24 * time.Hour
	a := &authority{dir: filepath.Join(dir, "certificates")}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a.certificate, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "stroppy kubetest", NotBefore: time.Now().Add(-before)}, a.key)
	must(t, err)
	a.pem, err = cert.EncodeCertificates(a.certificate)
	must(t, err)
	must(t, cert.WriteCert(a.path("ca.crt"), a.pem))
	a.write(t, a.path("server"), pkix.Name{CommonName: "kube-apiserver"}, address)
	a.write(t, a.path("etcd"), pkix.Name{CommonName: "kube-apiserver-client", Organization: []string{"system:masters"}})
	_, _, err = keyutil.LoadOrGenerateKeyFile(a.path("accounts.key"))
	must(t, err)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// sign makes a key and a certificate, both as PEM, for a client and for a server at these addresses.
func (a *authority) sign(t testing.TB, subject pkix.Name, addresses ...string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if len(addresses) > 0 {
		template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
		for _, address := range append(addresses, loopback, "10.0.0.1") {
			template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	must(t, err)
	signed, err := x509.ParseCertificate(der)
	must(t, err)
	certificate, err = cert.EncodeCertificates(signed)
	must(t, err)
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	must(t, err)
	return certificate, key
}

// client returns a client that trusts the servers of the authority.
func (a *authority) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
}

// write writes a certificate and its key as PATH.crt and PATH.key.
func (a *authority) write(t testing.TB, path string, subject pkix.Name, addresses ...string) {
	t.Helper()
	certificate, key := a.sign(t, subject, addresses...)
	must(t, cert.WriteCert(path+".crt", certificate))
	must(t, keyutil.WriteKey(path+".key", key))
}

// writeKubeconfig writes a kubeconfig with a certificate for a user in groups.
func (a *authority) writeKubeconfig(t testing.TB, path, server, user string, groups ...string) {
	t.Helper()
	certificate, key := a.sign(t, pkix.Name{CommonName: user, Organization: groups})
	a.writeConfig(t, path, server, user, &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}, "default")
}

// writeConfig writes a kubeconfig with one cluster, user and context, which all have the user's name.
func (a *authority) writeConfig(t testing.TB, path, server, user string, auth *api.AuthInfo, namespace string) {
	t.Helper()
	config := api.NewConfig()
	config.Clusters[user] = &api.Cluster{Server: server, CertificateAuthorityData: a.pem}
	config.AuthInfos[user] = auth
	config.Contexts[user] = &api.Context{Cluster: user, AuthInfo: user, Namespace: namespace}
	config.CurrentContext = user
	must(t, clientcmd.WriteToFile(*config, path)) // mode 0600
}

// loadKubeconfig returns a client configuration without a rate limit, because tests ask often.
func loadKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}
