// Package npmcache provides the tests with npm programs and libraries: a server, and another lock client to share
// locks with.
//
// Each set of packages and versions is installed once, into a folder below the user's cache directory, even by
// concurrent processes. Install scripts of packages do not run.
//
// Environment:
//
//	XDG_CACHE_HOME  where the folder holdfast/npm is made (default ~/.cache; os.UserCacheDir has the other systems' rules)
//	npm_config_...  npm's own settings, such as npm_config_registry
package npmcache
