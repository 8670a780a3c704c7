package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// authority signs the certificates of one control plane. Its own key exists only in this process.
type authority struct {
	dir         string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pem         []byte
}

// validity is long for a test. Certificates begin before now, for clocks that are changed.
const validity = 24 * time.Hour

// newAuthority makes an authority, and writes files into a folder: the certificates of the servers and of the API
// server as a client, and the key for tokens of service accounts.
func newAuthority(dir, address string) (*authority, error) {
	a := &authority{dir: filepath.Join(dir, "certificates")}
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.key = key
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stroppy kubetest"},
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(a.path("ca.crt"), a.pem, 0o600); err != nil {
		return nil, err
	}
	if err := a.write("server", pkix.Name{CommonName: "kube-apiserver"}, address); err != nil {
		return nil, err
	}
	if err := a.write("etcd", pkix.Name{CommonName: "kube-apiserver-client", Organization: []string{"system:masters"}}); err != nil {
		return nil, err
	}
	return a, a.writeAccountsKey()
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// sign makes a key and a certificate, both as PEM, for a client and for a server at these addresses.
func (a *authority) sign(subject pkix.Name, addresses ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if len(addresses) > 0 {
		template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
		for _, address := range addresses {
			template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), nil
}

// client returns a client that trusts the servers of the authority.
func (a *authority) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
}

// write writes a certificate and its key as NAME.crt and NAME.key.
func (a *authority) write(name string, subject pkix.Name, addresses ...string) error {
	certificate, key, err := a.sign(subject, addresses...)
	if err != nil {
		return fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(a.path(name+".crt"), certificate, 0o600); err != nil {
		return err
	}
	return os.WriteFile(a.path(name+".key"), key, 0o600)
}

func (a *authority) writeAccountsKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.path("accounts.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(a.path("accounts.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600)
}

// writeKubeconfig writes a kubeconfig with a certificate for a user in groups.
func (a *authority) writeKubeconfig(path, server, user string, groups ...string) error {
	certificate, key, err := a.sign(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return fmt.Errorf("make the certificate of the user %s: %w", user, err)
	}
	return a.writeConfig(path, server, user, &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}, "default")
}

// writeConfig writes a kubeconfig with one cluster, user and context, which all have the user's name.
func (a *authority) writeConfig(path, server, user string, auth *api.AuthInfo, namespace string) error {
	config := api.NewConfig()
	config.Clusters[user] = &api.Cluster{Server: server, CertificateAuthorityData: a.pem}
	config.AuthInfos[user] = auth
	config.Contexts[user] = &api.Context{Cluster: user, AuthInfo: user, Namespace: namespace}
	config.CurrentContext = user
	return clientcmd.WriteToFile(*config, path) // mode 0600
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
