--- What other assistants read, who reads what, and a session of Claude Code that runs in the folder.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')
local seen = observe.seen

local company = vim.env.NEXUS_TEST_WORKSPACE
local folder = company .. '/backend/auth-service'
local messages = {}

local function record(number, usage)
  local now = os.date('!%Y-%m-%dT%H:%M:%S.000Z')
  local about = { sessionId = 's1', cwd = folder, version = '2.1.330', isSidechain = false, timestamp = now }
  local question = vim.tbl_extend('error', about, {
    type = 'user',
    uuid = 'u' .. number,
    message = { role = 'user', content = 'Where is the gate?' },
  })
  local answer = vim.tbl_extend('error', about, {
    type = 'assistant',
    uuid = 'a' .. number,
    requestId = 'r' .. number,
    message = {
      id = 'm' .. number,
      role = 'assistant',
      model = 'claude-sonnet-4-5',
      content = { { type = 'text', text = 'It is closed.' } },
      usage = usage,
    },
  })
  return { vim.json.encode(question), vim.json.encode(answer) }
end

observe.run(function()
  observe.install()
  vim.notify = function(message)
    table.insert(messages, message)
  end
  observe.open_attached(folder .. '/.nexus3/NEXUS.md')
  seen.complete = vim.fn.getcompletion('NexusAssistant c', 'cmdline')
  seen.unknown = (function()
    vim.cmd('NexusAssistant codecs')
    return messages[#messages]
  end)()
  vim.fn.writefile({ 'Be brief.', '@docs/style.md' }, folder .. '/CLAUDE.md')
  seen.read = observe.read_page('NexusAssistant claude-code', 'assistant').text
  seen.readers = observe.read_page('NexusReaders', 'readers').text
  vim.ui.select = function(items, options, on_choice)
    seen.items = vim.tbl_map(options.format_item, items)
    on_choice(items[2])
  end
  seen.picked = observe.read_page('NexusAssistant', 'assistant').text
  seen.followed = observe.follow('NexusAssistant claude-code', 'assistant', 'project')
  local projects = vim.env.HOME .. '/.claude/projects/' .. folder:gsub('[^%w]', '-')
  vim.fn.mkdir(projects, 'p')
  local first = { input_tokens = 10, cache_creation_input_tokens = 18990, output_tokens = 5 }
  vim.fn.writefile(record(1, first), projects .. '/s1.jsonl')
  observe.wait('the announcement', function()
    return messages[#messages]:find('runs in') ~= nil
  end)
  observe.wait('the status line of Claude Code', function()
    return require('nexus').statusline():find('^claude%-code ≈') ~= nil
  end)
  seen.announced = messages[#messages]
  local again = { input_tokens = 10, cache_read_input_tokens = 18990, output_tokens = 5 }
  vim.fn.writefile(record(2, again), projects .. '/s1.jsonl', 'a')
  seen.session = observe.read_page('NexusAssistant claude-code', 'assistant').text
end)

vim.cmd.quitall({ bang = true })
