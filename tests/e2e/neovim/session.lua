--- One session of a user on the example workspace, from opening a file to leaving.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')
local seen = observe.seen

local company = vim.env.NEXUS_TEST_WORKSPACE
local folder = company .. '/backend/auth-service'
local folder_uri = vim.uri_from_fname(folder)

local changes, messages, exit = {}, {}, nil

local function prepare()
  vim.api.nvim_create_autocmd('User', {
    pattern = 'NexusContextChanged',
    callback = function(event)
      table.insert(changes, event.data)
    end,
  })
  vim.notify = function(message, level)
    table.insert(messages, { level = level or vim.log.levels.INFO, message = message })
  end
  -- on top of the plugin's own configuration, as a user adds to it
  vim.lsp.config('nexus', {
    on_exit = function(code, signal)
      exit = { code = code, signal = signal }
    end,
  })
end

--- The first notification about a folder that meets a condition, other than those given before.
local function wait_change(uri, what, condition)
  local found
  observe.wait('nexus/context/didChange: ' .. what, function()
    for index, change in ipairs(changes) do
      if change.workspaceFolder == uri and condition(change) then
        found = table.remove(changes, index)
        return true
      end
    end
  end)
  return found
end

local function any()
  return true
end

--- A configuration file with nothing to say against it, broken, fixed, never saved.
local function edit_config()
  local buffer = observe.open_attached(folder .. '/.nexus3/config.json')
  wait_change(folder_uri, 'opened', any)
  local opened = observe.wait_diagnostics(buffer, {})
  local text = observe.text(buffer)
  observe.replace_line(buffer, 10, '    "_comment": "naïve 🦊", "level": "sandbox",')
  local schema = observe.wait_diagnostics(buffer, { 'config.enum' })
  observe.replace_line(buffer, 10, '    "level": "sandboxed"')
  local syntax = observe.wait_diagnostics(buffer, { 'json.missing-comma' })
  observe.replace_line(buffer, 10, '    "level": "sandboxed",')
  local fixed = observe.wait_diagnostics(buffer, {})
  seen.config = {
    opened = opened,
    schema = schema,
    syntax = syntax,
    fixed = fixed,
    same_text = observe.text(buffer) == text,
  }
end

--- What is in a buffer and not on the disk counts.
local function edit_unsaved()
  local buffer = vim.fn.bufnr(folder .. '/.nexus3/config.json')
  observe.replace_line(buffer, 15, '    "temperature": 0.7')
  local effective = observe.request('nexus/config/effective', { workspaceFolder = folder_uri })
  vim.cmd.edit({ bang = true, args = { vim.api.nvim_buf_get_name(buffer) } })
  local reloaded = observe.request('nexus/config/effective', { workspaceFolder = folder_uri })
  seen.unsaved = {
    in_buffer = effective.config.parameters.temperature,
    on_disk = reloaded.config.parameters.temperature,
    provenance = effective.provenance['/parameters/temperature'],
  }
end

--- A trailing comma, and the quick fix that takes it away.
local function fix_mcp()
  local buffer = observe.open_attached(folder .. '/.nexus3/mcp.json')
  local text = observe.text(buffer)
  local opened = observe.wait_diagnostics(buffer, {})
  observe.replace_line(buffer, 9, '      "enabled": false,')
  local broken = observe.wait_diagnostics(buffer, { 'json.trailing-comma' })
  vim.api.nvim_win_set_cursor(0, { 9, 22 })
  vim.lsp.buf.code_action({ apply = true, context = { only = { 'quickfix' } } })
  observe.wait('the quick fix', function()
    return observe.text(buffer) == text
  end)
  seen.mcp = { opened = opened, broken = broken, fixed = observe.wait_diagnostics(buffer, {}) }
  vim.bo[buffer].modified = false
end

local function read_pages()
  vim.cmd.edit(folder .. '/.nexus3/NEXUS.md')
  local params = { workspaceFolder = folder_uri }
  local executed
  observe
    .client()
    :exec_cmd({ command = 'nexus.context.assemble', arguments = { params } }, nil, function(err, result)
      executed = { err = err, result = result }
    end)
  observe.wait('executeCommand', function()
    return executed
  end)
  seen.requests = {
    assemble = observe.request('nexus/context/assemble', params),
    executed = executed.result,
    preview = observe.request('nexus/context/preview', params),
    usage = observe.request('nexus/context/usage', params),
  }
  seen.pages = {
    context = observe.read_page('NexusContext', 'context'),
    message = observe.read_page('NexusContext Why is the login slow?', 'context'),
    preview = observe.read_page('NexusPreview', 'preview'),
    layers = observe.read_page('vertical NexusLayers', 'layers'),
    usage = observe.read_page('tab NexusUsage', 'usage'),
  }
  seen.followed = {
    preview = observe.follow('NexusPreview', 'preview', '## Key files'),
    layers = observe.follow('vertical NexusLayers', 'layers', 'local             config'),
    usage = observe.follow('NexusUsage', 'usage', 'system    Ancestor Configuration (backend)'),
  }
end

--- A lens of each kind that is run: which page opens, and what is marked there.
local function run_lenses()
  local function run(path, line, view)
    local buffer = observe.open_attached(folder .. path)
    local shown
    observe.wait('lenses of ' .. path, function()
      vim.lsp.codelens.refresh({ bufnr = buffer })
      shown = vim.lsp.codelens.get(buffer)
      return #shown > 0
    end)
    vim.api.nvim_win_set_cursor(0, { line, 0 })
    local at_line = vim.iter(shown):filter(function(lens)
      return lens.range.start.line == line - 1
    end)
    vim.ui.select = function(items, _, on_choice)
      on_choice(items[1], 1)
    end
    local page = observe.open_page(vim.lsp.codelens.run, view)
    local marks = vim.api.nvim_buf_get_extmarks(page, -1, 0, -1, { details = true })
    local marked = vim.iter(marks):find(function(mark)
      return mark[4].hl_group == 'Visual'
    end)
    local text = marked
      and vim.api.nvim_buf_get_text(page, marked[2], marked[3], marked[4].end_row, marked[4].end_col, {})
    local seen_here = {
      title = at_line:next().command.title,
      at_mark = marked and vim.deep_equal(vim.api.nvim_win_get_cursor(0), { marked[2] + 1, marked[3] }),
      text = text and table.concat(text, '\n'),
    }
    vim.api.nvim_feedkeys('q', 'x', false)
    return seen_here
  end
  seen.lenses = {
    heading = run('/.nexus3/NEXUS.md', 11, 'preview'),
    skill = run('/.nexus3/skills/rotate-key/SKILL.md', 12, 'layers'),
  }
end

--- The lenses of MCP servers, and what one of them says when it is run.
local function run_server_lenses()
  local buffer = observe.open_attached(folder .. '/.nexus3/mcp.json')
  local shown
  observe.wait('lenses of servers', function()
    vim.lsp.codelens.refresh({ bufnr = buffer })
    shown = vim.lsp.codelens.get(buffer)
    return #shown > 0
  end)
  local said
  vim.lsp.handlers['window/showMessage'] = function(_, params)
    said = params.message
  end
  vim.api.nvim_win_set_cursor(0, { shown[1].range.start.line + 1, 0 })
  vim.lsp.codelens.run()
  observe.wait('what the lens says', function()
    return said
  end)
  local titles = vim.tbl_map(function(lens)
    return lens.command.title
  end, shown)
  seen.servers = { titles = titles, said = said }
end

--- Growing instructions move the figures in the status line.
local function watch_usage()
  local buffer = observe.open_attached(folder .. '/.nexus3/NEXUS.md')
  local before = require('nexus').statusline(buffer)
  local text = ('- Sessions end after an hour.\n'):rep(100)
  vim.api.nvim_buf_set_lines(buffer, -1, -1, true, vim.split(text, '\n'))
  local change = wait_change(folder_uri, 'longer instructions', function(change)
    return change.reason == 'instructions' and change.usage.total > 1000
  end)
  seen.usage = {
    before = before,
    after = require('nexus').statusline(buffer),
    change = change,
    global = vim.g.nexus_usage[folder_uri],
    rule = vim.api.nvim_eval_statusline("%{v:lua.require'nexus'.statusline()}", {}).str,
  }
  vim.bo[buffer].modified = false
end

--- A file of another folder brings that to the client that runs, one of the global layer brings none.
local function open_second_folder()
  observe.open_attached(company .. '/backend/AGENTS.md')
  wait_change(vim.uri_from_fname(company .. '/backend'), 'opened', any)
  observe.open_attached(vim.env.NEXUS_HOME .. '/NEXUS.md')
  local status = observe.request('nexus/status', vim.empty_dict())
  seen.folders = {
    clients = #vim.lsp.get_clients({ name = 'nexus' }),
    of_client = vim.tbl_map(function(each)
      return each.uri
    end, observe.client().workspace_folders),
    of_daemon = vim.tbl_map(function(each)
      return each.uri
    end, status.folders),
  }
  local reads = {}
  for _, name in ipairs({
    'package.json',
    'README.md',
    'notes.md',
    'mcp.json',
    '.mcp.json',
    '.vscode/mcp.json',
    '.vscode/settings.json',
    'AGENTS.override.md',
    '.claude/CLAUDE.md',
    'backend/auth-service/README.md',
    'backend/auth-service/.nexus3/docs/threats.md',
    'backend/auth-service/.nexus3/other.json',
  }) do
    reads[name] = require('nexus').reads(company .. '/' .. name)
  end
  local other = observe.open(company .. '/package.json')
  seen.reads = reads
  seen.attached_to_other = #vim.lsp.get_clients({ name = 'nexus', bufnr = other })
end

--- Created, left alone, refused.
local function create_folder()
  local directory, linked = company .. '/frontend', company .. '/linked'
  vim.fn.mkdir(directory)
  vim.fn.mkdir(linked)
  vim.uv.fs_symlink('/', linked .. '/.nexus3')
  for count, path in ipairs({ directory, directory, linked }) do
    vim.cmd.NexusInit(path)
    observe.wait('message of :NexusInit', function()
      return #messages == count
    end)
  end
  seen.init = { messages = messages, files = vim.fn.sort(vim.fn.readdir(directory .. '/.nexus3')) }
  messages = {}
end

local function leave()
  observe.client():stop()
  observe.wait('the end of the daemon', function()
    return exit
  end)
  seen.exit = exit
  seen.messages = messages
end

observe.run(function()
  prepare()
  observe.install()
  edit_config()
  edit_unsaved()
  fix_mcp()
  open_second_folder()
  read_pages()
  run_lenses()
  run_server_lenses()
  watch_usage()
  create_folder()
  leave()
end)
