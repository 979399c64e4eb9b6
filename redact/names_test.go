package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// Requirement: G23.
func TestSecretLikeNames(t *testing.T) {
	t.Parallel()
	names := []string{
		"password", "Password", "PASSWORD", "passwords", "passwd", "pwd", "pswd", "pass", "pw", "passphrase", "pass_phrase", "passcode", "passwort", "Kennwort",
		"senha", "wachtwoord", "passord", "motdepasse", "psk", "dbPassword", "DB_PASSWORD", "db.password", "db-password", "dbpassword", "mysqlPwd",
		"password1", "PASSWORD_PROD", "confirm_password", "secret", "clientSecret", "client-secret", "CLIENT_SECRET", "clientsecret", "SECRET_KEY_BASE",
		"token", "accessToken", "access_token", "ACCESS_TOKEN", "authtoken", "bot_token", "id_token", "xsrf-token", "TOKEN_2", "api key", "apikey", "apiKey", "APIKey",
		"api_key", "X-API-Key", "x-goog-api-key", "Ocp-Apim-Subscription-Key", "AccountKey", "aws_secret_access_key", "private_key", "privateKey", "signingKey",
		"ENCRYPTION_KEY", "STRIPE_KEY", "MASTER_KEY", "credential", "credentials", "cred", "auth", "Authorization", "authorization", "JSESSIONID",
		"PHPSESSID", "X-JFrog-Art-Api", "otp", "пароль", "Пароль", "密码", "パスワード", "비밀번호", "סיסמה", "كلمة المرور", "contraseña", "hasło", "密钥", "token secret",
	}
	value := fake(alnums, 32)
	for _, name := range names {
		for _, form := range []string{name + "=" + value, name + ": " + value, `"` + name + `": "` + value + `"`, name + " := '" + value + "'", "the " + name + " is " + value + "."} {
			got, counts, err := redact.Secrets().Text(form)
			require.NoError(t, err)
			require.NotContains(t, got, value, form)
			require.Equal(t, redact.Counts{redact.Password: 1}, counts, form)
		}
		got, _, err := redact.Secrets().Value(`{"` + name + `":"` + value + `"}`)
		require.NoError(t, err)
		require.Equal(t, `{"`+name+`":"[REDACTED:password]"}`, got)
	}
}

// Requirement: G23.
func TestNamesWithoutSecretMeaning(t *testing.T) {
	t.Parallel()
	names := []string{
		"id", "key", "value", "hash", "sha", "commit", "digest", "etag", "checksum", "monkey", "turkey", "compass", "passenger", "bypass", "author", "authority",
		"secretary", "tokenizer", "keyboard", "public_key", "publicKey", "PUBLIC_KEY", "primaryKey", "cacheKey", "partition_key", "idempotency_key", "nextPageToken",
		"next_page_token", "continuationToken", "sync_token", "token_id", "tokenType", "token_count", "password_hint", "passwordPolicy", "PASSWORD_FILE", "secretName",
		"secret_arn", "api_key_id", "apiKeyName", "keyVaultName", "auth_url", "auth_provider", "max_tokens", "forgot_password", "is_secret", "x-request-id",
		"image", "Ключ", "鍵", "מפתח",
	}
	value := fake(alnums, 32)
	for _, name := range names {
		for _, form := range []string{name + "=" + value, name + ": " + value, `"` + name + `": "` + value + `"`, "the " + name + " is " + value + "."} {
			got, counts, err := redact.Secrets().Text(form)
			require.NoError(t, err)
			require.Nil(t, counts, form)
			require.Equal(t, form, got)
		}
		got, _, err := redact.Secrets().Value(`{"` + name + `":"` + value + `"}`)
		require.NoError(t, err)
		require.Equal(t, `{"`+name+`":"`+value+`"}`, got)
	}
}
